// SPDX-License-Identifier: Apache-2.0
#include "vitrail/tensor/shape.h"

#include <algorithm>
#include <ostream>

#include "vitrail/base/error.h"

namespace vitrail {

Shape::Shape(std::initializer_list<int64_t> extents) : Shape(std::span(extents.begin(), extents.size())) {}

Shape::Shape(std::span<const int64_t> extents) {
  for (const int64_t extent : extents) push_back(extent);
}

void Shape::push_back(int64_t extent) {
  if (rank_ == kMaxRank) throw Error("shape", str("at most ", kMaxRank, " dimensions"), "more");
  extents_[rank_++] = extent;
}

int64_t Shape::numel() const {
  int64_t count = 1;
  for (const int64_t extent : *this) count *= extent;
  return count;
}

bool Shape::operator==(const Shape& other) const { return std::equal(begin(), end(), other.begin(), other.end()); }

std::string Shape::to_string() const {
  std::string text = "[";
  for (int i = 0; i < rank_; ++i) text += (i ? ", " : "") + std::to_string(extents_[i]);
  return text + "]";
}

Shape contiguous_strides(const Shape& shape) {
  Shape strides = shape;
  int64_t step = 1;
  for (int i = shape.rank() - 1; i >= 0; --i) {
    strides[i] = step;
    step *= shape[i];
  }
  return strides;
}

int64_t checked_numel(std::span<const int64_t> extents, const std::string& where) {
  int64_t count = 1;
  bool empty = false;
  for (const int64_t extent : extents) {
    if (extent < 0) throw Error(where, "extents of at least 0", std::to_string(extent));
    if (extent == 0) {
      empty = true;
    } else if (__builtin_mul_overflow(count, extent, &count)) {
      throw Error(where, "fewer than 2^63 elements", "a larger shape");
    }
  }
  return empty ? 0 : count;
}

Shape broadcast_shapes(const Shape& a, const Shape& b, const std::string& where) {
  const Shape& longer = a.rank() >= b.rank() ? a : b;
  const Shape& shorter = a.rank() >= b.rank() ? b : a;
  Shape result = longer;
  const int lead = longer.rank() - shorter.rank();
  for (int i = 0; i < shorter.rank(); ++i) {
    const int64_t x = longer[lead + i], y = shorter[i];
    if (x != y && x != 1 && y != 1) {
      throw Error(where, "shapes that broadcast", a.to_string() + " and " + b.to_string());
    }
    result[lead + i] = x == 1 ? y : x;
  }
  return result;
}

std::ostream& operator<<(std::ostream& out, const Shape& shape) { return out << shape.to_string(); }

}  // namespace vitrail
