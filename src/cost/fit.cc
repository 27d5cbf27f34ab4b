// SPDX-License-Identifier: Apache-2.0
#include "cost/fit.h"

#include <cmath>
#include <Eigen/Dense>
#include <unsupported/Eigen/NonLinearOptimization>
#include <vector>

namespace crosstie {
namespace {

constexpr double kSpread = 0.2;       // of log(predicted / measured) at weight 1
constexpr double kDifference = 1e-4;  // of a logarithm, for derivatives
constexpr int kRounds = 8;            // of weighing outliers anew
constexpr double kNormal95 = 1.96;    // standard deviations

// Logarithms of the parameters' values, as a vector.
Eigen::VectorXd expected_logs() {
  Eigen::VectorXd logs(kParameters);
  for (size_t i = 0; i < kParameters; i++)
    logs[static_cast<Eigen::Index>(i)] = std::log(parameter_rows()[i].expected);
  return logs;
}

ParameterValues values_of(const Eigen::VectorXd& logs) {
  ParameterValues values;
  for (size_t i = 0; i < kParameters; i++) {
    const double value = std::exp(logs[static_cast<Eigen::Index>(i)]);
    values.all()[i] = std::min(value, most(static_cast<Parameter>(i)));
  }
  return values;
}

// As Eigen's Levenberg-Marquardt asks for them: the residuals and their derivatives.
class Residuals {
 public:
  explicit Residuals(std::span<const Observation> observations)
      : observations_(observations),
        outlier_(observations.size(), 1.0),
        expected_(expected_logs()) {}

  Eigen::Index inputs() const { return kParameters; }
  Eigen::Index values() const {
    return static_cast<Eigen::Index>(observations_.size() + kParameters);
  }

  int operator()(const Eigen::VectorXd& logs, Eigen::VectorXd& residuals) const {
    const ParameterValues values = values_of(logs);
    for (size_t i = 0; i < observations_.size(); i++)
      residuals[static_cast<Eigen::Index>(i)] = outlier_[i] * residual(values, observations_[i]);
    const auto count = static_cast<Eigen::Index>(observations_.size());
    for (Eigen::Index i = 0; i < inputs(); i++)
      residuals[count + i] = (logs[i] - expected_[i]) / std::log(factor(i));
    return 0;
  }

  int df(const Eigen::VectorXd& logs, Eigen::MatrixXd& jacobian) const {
    Eigen::VectorXd here(values()), there(values());
    (*this)(logs, here);
    for (Eigen::Index i = 0; i < inputs(); i++) {
      Eigen::VectorXd moved = logs;
      moved[i] += kDifference;
      (*this)(moved, there);
      jacobian.col(i) = (there - here) / kDifference;
    }
    return 0;
  }

  void weigh_outliers(const Eigen::VectorXd& logs) {
    const ParameterValues values = values_of(logs);
    for (size_t i = 0; i < observations_.size(); i++) {
      const double off = residual(values, observations_[i]);
      outlier_[i] = std::pow(1 + off * off, -0.25);
    }
  }

 private:
  static double factor(Eigen::Index i) { return parameter_rows()[static_cast<size_t>(i)].factor; }
  static double residual(const ParameterValues& values, const Observation& of) {
    const CostModel model(values, of.facts, of.job);
    const Seconds time = model.predict(of.collective, of.algorithm, of.protocol, of.bytes).time();
    return std::log(time / of.measured) * of.weight / kSpread;
  }

  std::span<const Observation> observations_;
  std::vector<double> outlier_;
  Eigen::VectorXd expected_;
};

std::array<Interval, kParameters> intervals_at(const Residuals& residuals,
                                               const Eigen::VectorXd& logs) {
  Eigen::MatrixXd jacobian(residuals.values(), residuals.inputs());
  residuals.df(logs, jacobian);
  const Eigen::MatrixXd covariance = (jacobian.transpose() * jacobian).inverse();
  const ParameterValues values = values_of(logs);
  std::array<Interval, kParameters> intervals;
  for (size_t i = 0; i < kParameters; i++) {
    const auto at = static_cast<Eigen::Index>(i);
    const double factor = std::exp(kNormal95 * std::sqrt(covariance(at, at)));
    intervals[i] = {values.all()[i] / factor,
                    std::min(values.all()[i] * factor, most(static_cast<Parameter>(i)))};
  }
  return intervals;
}

}  // namespace

Profile fit(std::span<const Observation> observations) {
  Residuals residuals(observations);
  Eigen::VectorXd logs = expected_logs();
  for (int round = 0; round < kRounds; round++) {
    residuals.weigh_outliers(logs);
    Eigen::LevenbergMarquardt<Residuals> solver(residuals);
    solver.parameters.maxfev = 60;
    solver.minimize(logs);
  }
  return {"", "", values_of(logs), intervals_at(residuals, logs), {}};
}

}  // namespace crosstie
