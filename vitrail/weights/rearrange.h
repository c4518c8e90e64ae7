// SPDX-License-Identifier: Apache-2.0
#pragma once
// Axes moved, split and merged as an einops pattern says: "d (p1 p2 c) -> d c p1 p2".
#include <cstdint>
#include <map>
#include <string>
#include <variant>
#include <vector>

#include "vitrail/tensor/tensor.h"

namespace vitrail::weights {

// The size of an axis: a number, or the name of a configuration field that has it.
using AxisSizes = std::map<std::string, std::variant<int64_t, std::string>>;

// A pattern of https://einops.rocks: axes by name, "1" for an axis of extent 1, "..." for any number of axes, one level
// of parentheses for axes that share a dimension, the last of them varying fastest.  Every name stands once on each
// side.
class Rearrange {
 public:
  // Throws Error naming `where` for a pattern that cannot be read, or axes of which one side lacks some.
  static Rearrange parse(const std::string& pattern, const std::string& where);

  // The shape that apply() gives.  `sizes` are the known extents of axes; within one dimension at most one axis may
  // be missing there, and follows.  Throws Error naming `where` when the shape does not fit.
  Shape shape(const Shape& from, const std::map<std::string, int64_t>& sizes, const std::string& where) const;
  // A view where strides allow, else a copy.
  Tensor apply(const Tensor& from, const std::map<std::string, int64_t>& sizes, const std::string& where) const;

  const std::string& pattern() const { return pattern_; }
  bool has_axis(const std::string& name) const;

 private:
  struct Dimension {
    std::vector<int> axes;  // indices into names_
    bool grouped = false;   // written in parentheses
  };
  using Side = std::vector<Dimension>;
  Side parse_side(const std::string& text, const std::string& where, bool left);
  int add_axis(const std::string& name, const std::string& where, bool left);
  Rearrange without_ellipsis(int rank) const;
  Tensor apply_plain(const Tensor& from, const std::vector<int64_t>& extents) const;
  std::vector<int64_t> extents(const Shape& from, const std::map<std::string, int64_t>& sizes,
                               const std::string& where) const;
  Shape joined(const Side& side, const std::vector<int64_t>& extents) const;

  std::string pattern_;
  std::vector<std::string> names_;  // in the left side's order; "..." is one of them until the rank is known
  Side left_, right_;
};

}  // namespace vitrail::weights
