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
// A parameter of which the observations know less than a tenth of what was known before: they are
// silent about it.
constexpr double kSilent = 0.1;

// Logarithms of the parameters' values, as a vector.
Eigen::VectorXd logs_of(const ParameterValues& values) {
  Eigen::VectorXd logs(kParameters);
  for (size_t i = 0; i < kParameters; i++)
    logs[static_cast<Eigen::Index>(i)] = std::log(values.all()[i]);
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
  Residuals(std::span<const Observation> observations, const Eigen::VectorXd& expected)
      : observations_(observations), outlier_(observations.size(), 1.0), expected_(expected) {}

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
      moved[i] -= kDifference;  // downwards, where shares at their most can go
      (*this)(moved, there);
      jacobian.col(i) = (here - there) / kDifference;
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
    return std::log(predicted(values, of) / of.measured) * of.weight / kSpread;
  }

  std::span<const Observation> observations_;
  std::vector<double> outlier_;
  Eigen::VectorXd expected_;
};

// The residuals' derivatives: of the observations above, of what was known before below.
struct Information {
  explicit Information(const Residuals& residuals, const Eigen::VectorXd& logs)
      : jacobian(residuals.values(), residuals.inputs()) {
    residuals.df(logs, jacobian);
    covariance = (jacobian.transpose() * jacobian).inverse();
  }

  bool tells(Eigen::Index parameter) const {
    const auto observed = jacobian.col(parameter).head(jacobian.rows() - jacobian.cols());
    const auto known = jacobian.col(parameter).tail(jacobian.cols());
    return observed.squaredNorm() >= kSilent * known.squaredNorm();
  }
  Interval interval(Eigen::Index parameter, double value) const {
    const double factor = std::exp(kNormal95 * std::sqrt(covariance(parameter, parameter)));
    return {value / factor, std::min(value * factor, most(static_cast<Parameter>(parameter)))};
  }

  Eigen::MatrixXd jacobian, covariance;
};

}  // namespace

Seconds predicted(const ParameterValues& values, const Observation& of) {
  const CostModel model(values, of.facts, of.job);
  const Prediction all = model.predict(of.collective, of.algorithm, of.protocol, of.bytes);
  return of.on_gpu ? all.time_on_gpu() : all.time();
}

double weight_in_system(size_t times) { return 8 / std::sqrt(static_cast<double>(times)); }

Fit fit(std::span<const Observation> observations, const Profile& start) {
  Eigen::VectorXd logs = logs_of(start.values);
  Residuals residuals(observations, logs);
  for (int round = 0; round < kRounds; round++) {
    residuals.weigh_outliers(logs);
    Eigen::LevenbergMarquardt<Residuals> solver(residuals);
    solver.parameters.maxfev = 60;
    solver.minimize(logs);
  }
  const ParameterValues values = values_of(logs);
  const Information information(residuals, logs_of(values));
  Fit result{start, {}};
  for (size_t i = 0; i < kParameters; i++) {
    const auto parameter = static_cast<Eigen::Index>(i);
    result.told[i] = information.tells(parameter);
    if (!result.told[i]) continue;
    result.profile.values.all()[i] = values.all()[i];
    result.profile.intervals[i] = information.interval(parameter, values.all()[i]);
    result.profile.sources[i].clear();
  }
  result.profile.name.clear(), result.profile.source.clear(), result.profile.system.reset();
  return result;
}

}  // namespace crosstie
