// SPDX-License-Identifier: Apache-2.0
// The Hungarian method in its shortest-path form (Jonker and Volgenant): rows come in one after
// the other, each by the cheapest chain of rows that make room for one another. It needs nothing
// of costs but that they add up and compare.
#include "topology/assignment.h"

namespace crosstie {
namespace {

constexpr size_t kNone = SIZE_MAX;

class Assigner {
 public:
  Assigner(size_t rows, size_t columns, const std::function<Cost(size_t, size_t)>& cost)
      : columns_(columns), row_price_(rows), column_price_(columns), row_of_(columns, kNone) {
    for (size_t row = 0; row < rows; row++)
      for (size_t column = 0; column < columns; column++) costs_.push_back(cost(row, column));
  }

  std::vector<size_t> run() {
    for (size_t row = 0; row < row_price_.size(); row++) place(row);
    std::vector<size_t> column_of(row_price_.size(), kNone);
    for (size_t column = 0; column < columns_; column++)
      if (row_of_[column] != kNone) column_of[row_of_[column]] = column;
    return column_of;
  }

 private:
  // How a column is reached from the row that comes in.
  struct Reach {
    Cost distance{};
    size_t from = kNone;  // the column before it on the way
    bool known = false, final = false;
  };

  void place(size_t incoming) {
    reach_.assign(columns_, {});
    row_price_[incoming] = {};
    Cost so_far{};
    size_t at = kNone;
    for (size_t row = incoming; row != kNone; row = row_of_[at]) {
      look_from(row, at, so_far);
      at = nearest();
      so_far = reach_[at].distance;
      reach_[at].final = true;
    }
    settle_prices(incoming, so_far);
    make_room(incoming, at);
  }

  void look_from(size_t row, size_t at, const Cost& so_far) {
    for (size_t column = 0; column < columns_; column++) {
      Reach& reach = reach_[column];
      if (reach.final) continue;
      Cost distance = costs_[row * columns_ + column];
      distance += so_far;
      distance -= row_price_[row];
      distance -= column_price_[column];
      if (!reach.known || distance < reach.distance) reach = {distance, at, true, false};
    }
  }

  size_t nearest() const {
    size_t best = kNone;
    for (size_t column = 0; column < columns_; column++)
      if (!reach_[column].final &&
          (best == kNone || reach_[column].distance < reach_[best].distance))
        best = column;
    return best;
  }

  // So that every pair that was made costs nothing beyond its prices, and no pair less.
  void settle_prices(size_t incoming, const Cost& total) {
    row_price_[incoming] += total;
    for (size_t column = 0; column < columns_; column++) {
      const Reach& reach = reach_[column];
      if (!reach.final) continue;
      const Cost spare = total - reach.distance;
      column_price_[column] -= spare;
      if (row_of_[column] != kNone) row_price_[row_of_[column]] += spare;
    }
  }

  void make_room(size_t incoming, size_t column) {
    for (size_t from = reach_[column].from; from != kNone; from = reach_[column].from) {
      row_of_[column] = row_of_[from];
      column = from;
    }
    row_of_[column] = incoming;
  }

  size_t columns_;
  std::vector<Cost> costs_, row_price_, column_price_;
  std::vector<size_t> row_of_;  // by column
  std::vector<Reach> reach_;    // by column
};

}  // namespace

std::vector<size_t> assign(size_t rows, size_t columns,
                           const std::function<Cost(size_t row, size_t column)>& cost) {
  return Assigner(rows, columns, cost).run();
}

}  // namespace crosstie
