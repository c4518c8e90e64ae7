// SPDX-License-Identifier: Apache-2.0
#include "vitrail/analysis/linear_assignment.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "vitrail/base/error.h"

namespace vitrail::analysis {
namespace {

// Assigns rows one by one; there are at least as many columns.  The dual variables keep all reduced costs
// costs[i, j] − of_row[i] − of_column[j] at least 0, and at 0 for the assigned pairs.
class AugmentingPaths {
 public:
  AugmentingPaths(std::span<const double> costs, int64_t rows, int64_t columns)
      : costs_(costs),
        columns_(static_cast<size_t>(columns)),
        of_row_(static_cast<size_t>(rows)),
        of_column_(columns_),
        column_of_(static_cast<size_t>(rows), -1),
        row_of_(columns_, -1),
        previous_(columns_),
        length_(columns_),
        reached_(columns_) {
    for (int64_t row = 0; row < rows; ++row) assign(row);
  }

  const std::vector<int64_t>& column_of() const { return column_of_; }

 private:
  // Dijkstra's algorithm over reduced costs, from a row to a column without one.
  void assign(int64_t row) {
    std::ranges::fill(length_, std::numeric_limits<double>::infinity());
    reached_.assign(columns_, false);
    std::vector<int64_t> path_rows;
    double shortest = 0;
    int64_t column = -1;
    for (int64_t at = row; at >= 0; at = row_of_[static_cast<size_t>(column)]) {
      path_rows.push_back(at);
      column = nearest_column(at, shortest);
      shortest = length_[static_cast<size_t>(column)];
      reached_[static_cast<size_t>(column)] = true;
    }
    update(row, path_rows, shortest);
    for (int64_t at = -1; at != row;) {
      at = previous_[static_cast<size_t>(column)];
      row_of_[static_cast<size_t>(column)] = at;
      std::swap(column_of_[static_cast<size_t>(at)], column);
    }
  }

  // The column that is nearest of those not reached, with the lengths of paths through a row.
  int64_t nearest_column(int64_t row, double shortest) {
    const auto i = static_cast<size_t>(row);
    size_t nearest = columns_;
    for (size_t j = 0; j < columns_; ++j) {
      if (reached_[j]) continue;
      const double length = shortest + costs_[i * columns_ + j] - of_row_[i] - of_column_[j];
      if (length < length_[j]) {
        length_[j] = length;
        previous_[j] = row;
      }
      // Among equally near columns, one without a row ends the path.
      const bool nearer =
          nearest == columns_ || length_[j] < length_[nearest] || (length_[j] == length_[nearest] && row_of_[j] < 0);
      if (nearer) nearest = j;
    }
    return static_cast<int64_t>(nearest);
  }

  void update(int64_t first, const std::vector<int64_t>& path_rows, double shortest) {
    of_row_[static_cast<size_t>(first)] += shortest;
    for (const int64_t row : path_rows) {
      if (row != first)
        of_row_[static_cast<size_t>(row)] +=
            shortest - length_[static_cast<size_t>(column_of_[static_cast<size_t>(row)])];
    }
    for (size_t j = 0; j < columns_; ++j) {
      if (reached_[j]) of_column_[j] -= shortest - length_[j];
    }
  }

  std::span<const double> costs_;
  size_t columns_;
  std::vector<double> of_row_, of_column_;
  std::vector<int64_t> column_of_, row_of_;
  std::vector<int64_t> previous_;  // the row in front of each column on the shortest path
  std::vector<double> length_;     // the length of the shortest path to each column
  std::vector<bool> reached_;
};

}  // namespace

std::vector<int64_t> linear_assignment(std::span<const double> costs, int64_t rows, int64_t columns) {
  if (std::ssize(costs) != rows * columns) throw Error("costs", str(rows, "×", columns, " values"), str(costs.size()));
  if (!std::ranges::all_of(costs, [](double cost) { return std::isfinite(cost); }))
    throw Error("costs", "finite values", "others");
  if (rows <= columns) return AugmentingPaths(costs, rows, columns).column_of();
  std::vector<double> transposed(costs.size());
  for (int64_t i = 0; i < rows; ++i) {
    for (int64_t j = 0; j < columns; ++j)
      transposed[static_cast<size_t>(j * rows + i)] = costs[static_cast<size_t>(i * columns + j)];
  }
  std::vector<int64_t> column_of(static_cast<size_t>(rows), -1);
  const AugmentingPaths paths(transposed, columns, rows);
  for (int64_t j = 0; j < columns; ++j) column_of[static_cast<size_t>(paths.column_of()[static_cast<size_t>(j)])] = j;
  return column_of;
}

}  // namespace vitrail::analysis
