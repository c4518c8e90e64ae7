// SPDX-License-Identifier: Apache-2.0
#include "vitrail/analysis/label_map.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <utility>

#include "vitrail/base/error.h"
#include "vitrail/base/parallel.h"

namespace vitrail::analysis {
namespace {

constexpr double kUndefined = std::numeric_limits<double>::quiet_NaN();

// The two source positions of a target position, and the weight of the second.
struct LinearTaps {
  int64_t first, second;
  float weight;
};

LinearTaps linear_tap(int64_t from, int64_t to, int64_t i) {
  const double scale = static_cast<double>(from) / static_cast<double>(to);
  const double at = std::max(scale * (static_cast<double>(i) + 0.5) - 0.5, 0.0);
  const int64_t first = std::min(static_cast<int64_t>(at), from - 1);
  return {first, std::min(first + 1, from - 1), static_cast<float>(at - static_cast<double>(first))};
}

std::vector<LinearTaps> linear_taps(int64_t from, int64_t to) {
  std::vector<LinearTaps> taps;
  for (int64_t i = 0; i < to; ++i) taps.push_back(linear_tap(from, to, i));
  return taps;
}

// rows() gives a function from a row's index to its scores, which keeps at least two neighbours.
std::vector<int32_t> argmax_of_rows(const std::array<int64_t, 2>& map, int64_t classes, int64_t height, int64_t width,
                                    const auto& rows) {
  const std::vector<LinearTaps> down = linear_taps(map[0], height), across = linear_taps(map[1], width);
  std::vector<int32_t> result(static_cast<size_t>(height * width));
  const int64_t grain = 1 + (1 << 16) / (width * classes);
  parallel_for(0, height, grain, [&](int64_t begin, int64_t end) {
    auto row_of = rows();
    std::vector<float> blend(static_cast<size_t>(map[1] * classes)), pixel(static_cast<size_t>(classes));
    for (int64_t y = begin; y < end; ++y) {
      const LinearTaps& row = down[static_cast<size_t>(y)];
      const float *const above = row_of(row.first), *const below = row_of(row.second);
      for (size_t i = 0; i < blend.size(); ++i) blend[i] = above[i] + row.weight * (below[i] - above[i]);
      for (int64_t x = 0; x < width; ++x) {
        const LinearTaps& column = across[static_cast<size_t>(x)];
        const float *const left = blend.data() + column.first * classes, *const right =
                                                                             blend.data() + column.second * classes;
        for (size_t c = 0; c < pixel.size(); ++c) pixel[c] = left[c] + column.weight * (right[c] - left[c]);
        result[static_cast<size_t>(y * width + x)] =
            static_cast<int32_t>(std::max_element(pixel.begin(), pixel.end()) - pixel.begin());
      }
    }
  });
  return result;
}

// The rows of a map that windows cover.
class MeanRows {
 public:
  MeanRows(const std::vector<ScoreWindow>& windows, int64_t width)
      : windows_(windows), width_(width), classes_(windows.front().scores.size(2)) {}

  // Valid until the second next call for another row.
  const float* operator()(int64_t y) {
    Row& row = rows_[y % 2];
    if (std::exchange(row.y, y) != y) compute(row);
    return row.scores.data();
  }

 private:
  struct Row {
    int64_t y = -1;
    std::vector<float> scores = {};
  };

  void compute(Row& row) const {
    row.scores.assign(static_cast<size_t>(width_ * classes_), 0);
    std::vector<float> windows_at(static_cast<size_t>(width_));
    for (const ScoreWindow& window : windows_) {
      if (row.y < window.top || row.y >= window.top + window.height) continue;
      const LinearTaps down = linear_tap(window.scores.size(0), window.height, row.y - window.top);
      for (int64_t x = 0; x < window.width; ++x) {
        add(window.scores, down, linear_tap(window.scores.size(1), window.width, x),
            row.scores.data() + (window.left + x) * classes_);
        ++windows_at[static_cast<size_t>(window.left + x)];
      }
    }
    for (size_t i = 0; i < row.scores.size(); ++i) row.scores[i] /= windows_at[i / static_cast<size_t>(classes_)];
  }

  void add(const Tensor& scores, const LinearTaps& down, const LinearTaps& across, float* sum) const {
    const auto at = [&](int64_t y, int64_t x) { return scores.data<float>() + (y * scores.size(1) + x) * classes_; };
    const float *const top = at(down.first, across.first), *const right = at(down.first, across.second);
    const float *const below = at(down.second, across.first), *const corner = at(down.second, across.second);
    for (int64_t c = 0; c < classes_; ++c) {
      const float upper = top[c] + across.weight * (right[c] - top[c]);
      const float lower = below[c] + across.weight * (corner[c] - below[c]);
      sum[c] += upper + down.weight * (lower - upper);
    }
  }

  const std::vector<ScoreWindow>& windows_;
  int64_t width_, classes_;
  Row rows_[2];
};

double share(int64_t part, int64_t of) {
  return of == 0 ? kUndefined : static_cast<double>(part) / static_cast<double>(of);
}

double mean_of_defined(int64_t count, const auto& value) {
  double sum = 0;
  int64_t defined = 0;
  for (int64_t i = 0; i < count; ++i) {
    const double one = value(i);
    if (std::isnan(one)) continue;
    sum += one;
    ++defined;
  }
  return defined == 0 ? kUndefined : sum / static_cast<double>(defined);
}

}  // namespace

std::vector<int32_t> argmax_at_size(const Tensor& scores, int64_t height, int64_t width) {
  if (scores.rank() != 3 || scores.numel() == 0 || height < 1 || width < 1) {
    throw Error("argmax_at_size", "scores [h, w, C] and a target, all sizes at least 1",
                str(scores.shape(), " to ", height, "×", width));
  }
  const Tensor source = scores.to(DType::f32).contiguous();
  const int64_t row_size = source.size(1) * source.size(2);
  return argmax_of_rows({source.size(0), source.size(1)}, source.size(2), height, width,
                        [&] { return [&](int64_t y) { return source.data<float>() + y * row_size; }; });
}

std::vector<int32_t> argmax_at_size(const std::vector<ScoreWindow>& windows, const std::array<int64_t, 2>& map,
                                    int64_t height, int64_t width) {
  return argmax_of_rows(map, windows.front().scores.size(2), height, width, [&] { return MeanRows(windows, map[1]); });
}

LabelMapMetrics::LabelMapMetrics(int64_t classes) : classes_(classes) {
  if (classes < 1) throw Error("label map", "at least one class", str(classes));
  for (auto* counts : {&correct_, &labelled_, &predicted_}) counts->assign(static_cast<size_t>(classes), 0);
}

void LabelMapMetrics::add(std::span<const int32_t> labels, std::span<const int32_t> predicted, const std::string& where,
                          int32_t ignored) {
  if (labels.size() != predicted.size())
    throw Error(where, str(predicted.size(), " labels, as the image has pixels"), str(labels.size()));
  const auto is_class = [&](int32_t label) { return label >= 0 && label < classes_; };
  for (const int32_t label : labels) {
    if (label != ignored && !is_class(label))
      throw Error(where, str("labels from 0 to ", classes_ - 1, ", or ", ignored, " for ignored pixels"), str(label));
  }
  for (size_t i = 0; i < labels.size(); ++i) {
    if (labels[i] == ignored) continue;
    ++labelled_[static_cast<size_t>(labels[i])];
    if (is_class(predicted[i])) ++predicted_[static_cast<size_t>(predicted[i])];
    if (labels[i] == predicted[i]) ++correct_[static_cast<size_t>(labels[i])];
  }
}

int64_t LabelMapMetrics::pixels() const { return std::accumulate(labelled_.begin(), labelled_.end(), int64_t{0}); }

double LabelMapMetrics::pixel_accuracy() const {
  return share(std::accumulate(correct_.begin(), correct_.end(), int64_t{0}), pixels());
}

double LabelMapMetrics::iou(int64_t label) const {
  const auto i = static_cast<size_t>(label);
  return share(correct_.at(i), labelled_.at(i) + predicted_.at(i) - correct_.at(i));
}

double LabelMapMetrics::accuracy(int64_t label) const {
  return share(correct_.at(static_cast<size_t>(label)), labelled_.at(static_cast<size_t>(label)));
}

double LabelMapMetrics::mean_iou() const {
  return mean_of_defined(classes_, [&](int64_t i) { return iou(i); });
}

double LabelMapMetrics::mean_accuracy() const {
  return mean_of_defined(classes_, [&](int64_t i) { return accuracy(i); });
}

}  // namespace vitrail::analysis
