// SPDX-License-Identifier: Apache-2.0
#include "vitrail/ops/box_loss.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "vitrail/base/error.h"
#include "vitrail/ops/loss_internal.h"

namespace vitrail::ops {
namespace {

// One axis of two boxes: their lengths there, and what they have in common and around them.
template <class T>
struct Span {
  T first, last, other_first, other_last;

  Span(T centre, T size, T other_centre, T other_size)
      : first(centre - size / 2),
        last(centre + size / 2),
        other_first(other_centre - other_size / 2),
        other_last(other_centre + other_size / 2) {}

  T shared() const { return std::max(std::min(last, other_last) - std::max(first, other_first), T(0)); }
  T around() const { return std::max(last, other_last) - std::min(first, other_first); }
  // The derivatives with respect to `first` and `last`.
  std::array<T, 2> shared_slope() const {
    if (shared() == T(0)) return {T(0), T(0)};
    return {first > other_first ? T(-1) : T(0), last < other_last ? T(1) : T(0)};
  }
  std::array<T, 2> around_slope() const {
    return {first < other_first ? T(-1) : T(0), last > other_last ? T(1) : T(0)};
  }
};

template <class T>
struct BoxPair {
  Span<T> x, y;
  T width, height;  // those of the first box
  T shared, both, around;

  BoxPair(const T* a, const T* b)
      : x(a[0], a[2], b[0], b[2]),
        y(a[1], a[3], b[1], b[3]),
        width(a[2]),
        height(a[3]),
        shared(x.shared() * y.shared()),
        both(a[2] * a[3] + b[2] * b[3] - shared),
        around(x.around() * y.around()) {}

  T iou() const { return shared / both; }
  T giou() const { return iou() - 1 + both / around; }

  // The derivative of −giou() along one axis, of `first` and `last`.  `other` is the other axis.
  std::array<T, 2> slope(const Span<T>& axis, const Span<T>& other, T other_size) const {
    std::array<T, 2> result{};
    const std::array<T, 2> of_shared = axis.shared_slope(), of_around = axis.around_slope();
    for (size_t i = 0; i < 2; ++i) {
      const T d_shared = of_shared[i] * other.shared(), d_around = of_around[i] * other.around();
      const T d_both = (i == 0 ? -other_size : other_size) - d_shared;
      result[i] =
          -d_shared / both + shared / (both * both) * d_both - d_both / around + both / (around * around) * d_around;
    }
    return result;
  }
};

void check_boxes(const Tensor& boxes, const Tensor& targets, const char* where) {
  if (boxes.rank() != 2 || boxes.size(1) != 4 || boxes.shape() != targets.shape())
    throw Error(where, "boxes and targets [N, 4]", str(boxes.shape(), " and ", targets.shape()));
}

// The sum of one(values, targets, gradient) over groups of `size` values; it returns the loss and sets the derivative.
template <class One>
Tensor summed_loss(const Tensor& values, const Tensor& targets, int64_t size, const char* name, One one) {
  const DType dtype = compute_dtype(values, name);
  const Tensor x = prepared(values, dtype), t = prepared(targets, dtype), gradient = Tensor::empty(x.shape(), dtype);
  double sum = 0;
  dispatch_compute(dtype, [&](auto tag) {
    using T = decltype(tag);
    sum = sum_of_rows(x.numel() / size, size, [&](int64_t r) {
      return static_cast<double>(one(x.data<T>() + r * size, t.data<T>() + r * size, gradient.data<T>() + r * size));
    });
  });
  return loss_of(sum, name, values, gradient, dtype);
}

}  // namespace

Tensor box_l1_loss(const Tensor& boxes, const Tensor& targets) {
  check_boxes(boxes, targets, "box_l1_loss");
  return summed_loss(boxes, targets, 4, "box_l1_loss", [](const auto* a, const auto* b, auto* gradient) {
    std::remove_cvref_t<decltype(*a)> sum = 0;
    for (int64_t i = 0; i < 4; ++i) {
      sum += std::abs(a[i] - b[i]);
      gradient[i] = a[i] > b[i] ? 1 : a[i] < b[i] ? -1 : 0;
    }
    return sum;
  });
}

Tensor giou_loss(const Tensor& boxes, const Tensor& targets) {
  check_boxes(boxes, targets, "giou_loss");
  return summed_loss(boxes, targets, 4, "giou_loss", [](const auto* a, const auto* b, auto* gradient) {
    const BoxPair pair(a, b);
    const auto x = pair.slope(pair.x, pair.y, pair.height), y = pair.slope(pair.y, pair.x, pair.width);
    gradient[0] = x[0] + x[1];
    gradient[1] = y[0] + y[1];
    gradient[2] = (x[1] - x[0]) / 2;
    gradient[3] = (y[1] - y[0]) / 2;
    return 1 - pair.giou();
  });
}

Tensor iou_aware_loss(const Tensor& logits, const Tensor& qualities) {
  if (logits.shape() != qualities.shape() || logits.rank() == 0)
    throw Error("iou_aware_loss", "logits and qualities of one shape", str(logits.shape(), " and ", qualities.shape()));
  const int64_t size = logits.size(logits.rank() - 1);
  return summed_loss(logits, qualities, size, "iou_aware_loss", [size](const auto* x, const auto* q, auto* gradient) {
    using T = std::remove_cvref_t<decltype(*x)>;
    double sum = 0;
    for (int64_t i = 0; i < size; ++i) {
      const T small = std::exp(-std::abs(x[i]));  // in (0, 1]
      const T p = x[i] >= T(0) ? T(1) / (T(1) + small) : small / (T(1) + small);
      const T negative = std::max(x[i], T(0)) + std::log1p(small);  // −log(1 − p)
      const bool matched = q[i] > T(0);
      sum += static_cast<double>(matched ? negative - q[i] * x[i] : p * p * negative);
      gradient[i] = matched ? p - q[i] : p * p * (2 * (1 - p) * negative + p);
    }
    return sum;
  });
}

BoxOverlap box_overlap(const float* a, const float* b) {
  const BoxPair pair(a, b);
  return {static_cast<double>(pair.iou()), static_cast<double>(pair.giou())};
}

}  // namespace vitrail::ops
