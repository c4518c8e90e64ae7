// SPDX-License-Identifier: Apache-2.0
#include "vitrail/analysis/label_map.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

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

std::vector<LinearTaps> linear_taps(int64_t from, int64_t to) {
  std::vector<LinearTaps> taps;
  const double scale = static_cast<double>(from) / static_cast<double>(to);
  for (int64_t i = 0; i < to; ++i) {
    const double at = std::max(scale * (static_cast<double>(i) + 0.5) - 0.5, 0.0);
    const int64_t first = std::min(static_cast<int64_t>(at), from - 1);
    taps.push_back({first, std::min(first + 1, from - 1), static_cast<float>(at - static_cast<double>(first))});
  }
  return taps;
}

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
  const auto classes = static_cast<size_t>(source.size(2));
  const std::vector<LinearTaps> rows = linear_taps(source.size(0), height),
                                columns = linear_taps(source.size(1), width);
  std::vector<int32_t> result(static_cast<size_t>(height * width));
  const int64_t grain = 1 + (1 << 16) / (width * source.size(2));
  parallel_for(0, height, grain, [&](int64_t begin, int64_t end) {
    std::vector<float> blend(static_cast<size_t>(row_size)), pixel(classes);
    for (int64_t y = begin; y < end; ++y) {
      const LinearTaps& row = rows[static_cast<size_t>(y)];
      const float* const above = source.data<float>() + row.first * row_size;
      const float* const below = source.data<float>() + row.second * row_size;
      for (size_t i = 0; i < blend.size(); ++i) blend[i] = above[i] + row.weight * (below[i] - above[i]);
      for (int64_t x = 0; x < width; ++x) {
        const LinearTaps& column = columns[static_cast<size_t>(x)];
        const float* const left = blend.data() + static_cast<size_t>(column.first) * classes;
        const float* const right = blend.data() + static_cast<size_t>(column.second) * classes;
        for (size_t c = 0; c < classes; ++c) pixel[c] = left[c] + column.weight * (right[c] - left[c]);
        result[static_cast<size_t>(y * width + x)] =
            static_cast<int32_t>(std::max_element(pixel.begin(), pixel.end()) - pixel.begin());
      }
    }
  });
  return result;
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
