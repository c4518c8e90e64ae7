// SPDX-License-Identifier: Apache-2.0
#pragma once
// Extents or strides of a tensor, stored without heap allocation.
#include <array>
#include <cstdint>
#include <initializer_list>
#include <iosfwd>
#include <span>
#include <string>

namespace vitrail {

// Up to kMaxRank integers: extents (≥ 0) or strides (in elements; may be 0 or negative).
class Shape {
 public:
  static constexpr int kMaxRank = 8;

  Shape() = default;
  Shape(std::initializer_list<int64_t> extents);
  explicit Shape(std::span<const int64_t> extents);  // throws Error for more than kMaxRank

  int rank() const { return rank_; }
  int64_t operator[](int i) const { return extents_[i]; }
  int64_t& operator[](int i) { return extents_[i]; }
  int64_t back(int from_end = 0) const { return extents_[rank_ - 1 - from_end]; }
  const int64_t* begin() const { return extents_.data(); }
  const int64_t* end() const { return extents_.data() + rank_; }
  void push_back(int64_t extent);  // throws Error beyond kMaxRank

  int64_t numel() const;  // number of elements; 1 for rank 0
  bool operator==(const Shape& other) const;
  std::string to_string() const;  // "[2, 197, 768]"

 private:
  std::array<int64_t, kMaxRank> extents_{};
  int rank_ = 0;
};

Shape contiguous_strides(const Shape& shape);  // row-major, in elements

// The number of elements.  Throws Error naming `where` if an extent is negative or the result exceeds 63 bits.
int64_t checked_numel(std::span<const int64_t> extents, const std::string& where);

// The shape to which both broadcast, by NumPy's rules.  Throws Error naming `where` and both shapes if there is none.
Shape broadcast_shapes(const Shape& a, const Shape& b, const std::string& where);

std::ostream& operator<<(std::ostream& out, const Shape& shape);

}  // namespace vitrail
