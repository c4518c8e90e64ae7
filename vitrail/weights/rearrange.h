// SPDX-License-Identifier: Apache-2.0
#pragma once
// Rearranges a tensor by an einops pattern such as "d (p1 p2 c) -> d c p1 p2".
#include <cstdint>
#include <map>
#include <string>
#include <variant>
#include <vector>

#include "vitrail/tensor/tensor.h"

namespace vitrail::weights {

// Sizes of axes: an integer, or the name of a configuration field.
using AxisSizes = std::map<std::string, std::variant<int64_t, std::string>>;

// A pattern of einops (https://einops.rocks): names of axes, "1" for an axis of extent 1, "..." for any number of axes,
// and one level of parentheses for axes that are merged into one dimension, the last varying fastest.  Every name
// occurs once on each side.
class Rearrange {
 public:
  // Throws Error naming `where` for a malformed pattern, or if the two sides have different axes.
  static Rearrange parse(const std::string& pattern, const std::string& where);

  // The shape of apply()'s result.  `sizes` are known extents of axes; one axis per dimension may be missing and is
  // inferred.  Throws Error naming `where` if the shape does not fit.
  Shape shape(const Shape& from, const std::map<std::string, int64_t>& sizes, const std::string& where) const;
  // A view if strides allow, else a copy.
  Tensor apply(const Tensor& from, const std::map<std::string, int64_t>& sizes, const std::string& where) const;

  const std::string& pattern() const { return pattern_; }
  bool has_axis(const std::string& name) const;

 private:
  struct Dimension {
    std::vector<int> axes;  // indices in names_
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
  std::vector<std::string> names_;  // in the order of the left side; contains "..." until the rank is known
  Side left_, right_;
};

}  // namespace vitrail::weights
