// SPDX-License-Identifier: Apache-2.0
#include "vitrail/weights/rearrange.h"

#include <algorithm>
#include <set>

#include "vitrail/base/error.h"

namespace vitrail::weights {
namespace {

constexpr const char* kEllipsis = "...";

bool is_name_char(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == '.';
}

bool is_name(const std::string& word) {
  const bool plain = word.find('.') == std::string::npos && !(word[0] >= '0' && word[0] <= '9');
  return plain || word == kEllipsis;
}

[[noreturn]] void fail(const std::string& where, const std::string& got) {
  throw Error(where, "a rearrange pattern such as \"d (p1 p2 c) -> d c p1 p2\"", got);
}

}  // namespace

// The left side declares the names; the right side may only use them.
int Rearrange::add_axis(const std::string& name, const std::string& where, bool left) {
  const auto known = std::find(names_.begin(), names_.end(), name);
  if (known != names_.end()) return static_cast<int>(known - names_.begin());
  if (!left) fail(where, str("the axis \"", name, "\", which is not on the left of \"", pattern_, "\""));
  names_.push_back(name);
  return static_cast<int>(names_.size()) - 1;
}

// Splits one side at spaces and parentheses.
Rearrange::Side Rearrange::parse_side(const std::string& text, const std::string& where, bool left) {
  Side side;
  std::set<int> seen;
  bool grouped = false;
  for (size_t i = 0; i < text.size();) {
    const char c = text[i];
    if (c == ' ') {
      ++i;
    } else if (c == '(' || c == ')') {
      if (grouped == (c == '(')) fail(where, str("parentheses that do not pair in \"", pattern_, "\""));
      grouped = c == '(';
      if (grouped) side.push_back({{}, true});
      ++i;
    } else if (is_name_char(c)) {
      const size_t first = i;
      while (i < text.size() && is_name_char(text[i])) ++i;
      const std::string name = text.substr(first, i - first);
      if (!grouped) side.emplace_back();
      if (name == "1") continue;  // an unnamed axis
      if (!is_name(name)) fail(where, str("the axis \"", name, "\" in \"", pattern_, "\""));
      if (left && grouped && name == kEllipsis)
        fail(where, str("\"...\" in parentheses on the left of \"", pattern_, "\""));
      const int axis = add_axis(name, where, left);
      if (!seen.insert(axis).second)
        fail(where, str("the axis \"", name, "\" twice on one side of \"", pattern_, "\""));
      side.back().axes.push_back(axis);
    } else {
      fail(where, str("the character '", c, "' in \"", pattern_, "\""));
    }
  }
  if (grouped) fail(where, str("parentheses that do not pair in \"", pattern_, "\""));
  if (side.size() > Shape::kMaxRank)
    fail(where, str("more than ", Shape::kMaxRank, " dimensions in \"", pattern_, "\""));
  return side;
}

Rearrange Rearrange::parse(const std::string& pattern, const std::string& where) {
  Rearrange result;
  result.pattern_ = pattern;
  const size_t arrow = pattern.find("->");
  if (arrow == std::string::npos) fail(where, str("\"", pattern, "\", which has no \"->\""));
  result.left_ = result.parse_side(pattern.substr(0, arrow), where, true);
  result.right_ = result.parse_side(pattern.substr(arrow + 2), where, false);
  size_t used = 0;
  for (const auto& dimension : result.right_) used += dimension.axes.size();
  if (used != result.names_.size()) fail(where, str("\"", pattern, "\", which loses an axis"));
  if (result.names_.size() > Shape::kMaxRank) fail(where, str("more than ", Shape::kMaxRank, " axes"));
  return result;
}

bool Rearrange::has_axis(const std::string& name) const {
  return std::find(names_.begin(), names_.end(), name) != names_.end();
}

// Replaces "..." by the axes that a tensor of this rank has in its position.
Rearrange Rearrange::without_ellipsis(int rank) const {
  const auto found = std::find(names_.begin(), names_.end(), kEllipsis);
  const int axes = rank - static_cast<int>(left_.size()) + 1;
  if (found == names_.end() || axes < 0) return *this;
  const int at = static_cast<int>(found - names_.begin());
  const auto renumber = [&](int axis) { return axis < at ? axis : axis + axes - 1; };
  Rearrange result;
  result.pattern_ = pattern_;
  result.names_ = names_;
  result.names_.erase(result.names_.begin() + at);
  for (int i = 0; i < axes; ++i) result.names_.insert(result.names_.begin() + at + i, str(kEllipsis, i));
  const auto expand = [&](const Side& from, Side& to) {
    for (const Dimension& dimension : from) {
      Dimension group{{}, dimension.grouped};
      for (const int axis : dimension.axes) {
        if (axis != at) {
          group.axes.push_back(renumber(axis));
          continue;
        }
        for (int i = 0; i < axes; ++i) {
          if (dimension.grouped) {
            group.axes.push_back(at + i);
          } else {
            to.push_back({{at + i}, false});
          }
        }
      }
      if (dimension.grouped || dimension.axes != std::vector<int>{at}) to.push_back(std::move(group));
    }
  };
  expand(left_, result.left_);
  expand(right_, result.right_);
  return result;
}

// The extents of all named axes.  A dimension may have one unknown axis, whose extent is inferred.
std::vector<int64_t> Rearrange::extents(const Shape& from, const std::map<std::string, int64_t>& sizes,
                                        const std::string& where) const {
  const auto misfit = [&](const std::string& got) {
    throw Error(where, "a shape that fits \"" + pattern_ + "\"", got);
  };
  if (from.rank() != static_cast<int>(left_.size())) misfit(from.to_string());
  std::vector<int64_t> result(names_.size(), -1);
  for (size_t i = 0; i < names_.size(); ++i) {
    if (const auto given = sizes.find(names_[i]); given != sizes.end()) result[i] = given->second;
  }
  for (int d = 0; d < from.rank(); ++d) {
    int64_t known = 1;
    int inferred = -1;
    for (const int axis : left_[d].axes) {
      if (result[axis] < 0) {
        if (inferred >= 0) misfit(str("no size for \"", names_[inferred], "\" or \"", names_[axis], "\""));
        inferred = axis;
      } else if (__builtin_mul_overflow(known, result[axis], &known)) {
        misfit(from.to_string());
      }
    }
    if (inferred >= 0 && known > 0 && from[d] % known == 0) {
      result[inferred] = from[d] / known;
      known = from[d];
    }
    if ((inferred >= 0 && result[inferred] < 0) || known != from[d]) misfit(from.to_string());
  }
  return result;
}

Shape Rearrange::joined(const Side& side, const std::vector<int64_t>& extents) const {
  Shape shape;
  for (const Dimension& dimension : side) {
    int64_t extent = 1;
    for (const int axis : dimension.axes) extent *= extents[axis];
    shape.push_back(extent);
  }
  return shape;
}

Shape Rearrange::shape(const Shape& from, const std::map<std::string, int64_t>& sizes, const std::string& where) const {
  const Rearrange plain = without_ellipsis(from.rank());
  return plain.joined(plain.right_, plain.extents(from, sizes, where));
}

Tensor Rearrange::apply(const Tensor& from, const std::map<std::string, int64_t>& sizes,
                        const std::string& where) const {
  const Rearrange plain = without_ellipsis(from.rank());
  return plain.apply_plain(from, plain.extents(from.shape(), sizes, where));
}

Tensor Rearrange::apply_plain(const Tensor& from, const std::vector<int64_t>& extents) const {
  Shape split;  // the left side with one dimension per name
  for (const int64_t extent : extents) split.push_back(extent);
  const Tensor parts = from.reshape(split);
  Shape shape, strides;
  for (const Dimension& dimension : right_) {
    for (const int axis : dimension.axes) {
      shape.push_back(parts.shape()[axis]);
      strides.push_back(parts.strides()[axis]);
    }
  }
  const Tensor moved(parts.storage(), parts.dtype(), shape, strides, parts.offset());
  return moved.reshape(joined(right_, extents));
}

}  // namespace vitrail::weights
