#include "vitrail/weights/rearrange.h"

#include <algorithm>
#include <set>

#include "vitrail/base/error.h"

namespace vitrail::weights {
namespace {

bool is_name_char(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
}

}  // namespace

// Splits one side at blanks and parentheses.  The left side introduces the names, the right one may only use them.
Rearrange::Side Rearrange::parse_side(const std::string& text, const std::string& where, bool left) {
  Side side;
  std::set<int> seen;
  bool grouped = false;
  const auto fail = [&](const std::string& got) {
    throw Error(where, "a rearrange pattern such as \"d (p1 p2 c) -> d c p1 p2\"", got);
  };
  for (size_t i = 0; i < text.size();) {
    const char c = text[i];
    if (c == ' ') {
      ++i;
    } else if (c == '(' || c == ')') {
      if (grouped == (c == '(')) fail("parentheses that do not pair in \"" + pattern_ + "\"");
      grouped = c == '(';
      if (grouped) side.emplace_back();
      ++i;
    } else if (is_name_char(c)) {
      const size_t first = i;
      while (i < text.size() && is_name_char(text[i])) ++i;
      const std::string name = text.substr(first, i - first);
      if (!grouped) side.emplace_back();
      if (name == "1") continue;  // an axis without a name
      if (name[0] >= '0' && name[0] <= '9') fail("the axis \"" + name + "\": only 1 may stand as a number");
      const auto known = std::find(names_.begin(), names_.end(), name);
      const int axis = static_cast<int>(known - names_.begin());
      if (known == names_.end()) {
        if (!left) fail("the axis \"" + name + "\", which is not on the left of \"" + pattern_ + "\"");
        names_.push_back(name);
      }
      if (!seen.insert(axis).second) fail("the axis \"" + name + "\" twice on one side of \"" + pattern_ + "\"");
      side.back().push_back(axis);
    } else {
      fail(str("the character '", c, "' in \"", pattern_, "\""));
    }
  }
  if (grouped) fail("parentheses that do not pair in \"" + pattern_ + "\"");
  if (side.size() > Shape::kMaxRank) fail(str("more than ", Shape::kMaxRank, " dimensions in \"", pattern_, "\""));
  return side;
}

Rearrange Rearrange::parse(const std::string& pattern, const std::string& where) {
  Rearrange result;
  result.pattern_ = pattern;
  const size_t arrow = pattern.find("->");
  if (arrow == std::string::npos) throw Error(where, "a rearrange pattern with \"->\"", "\"" + pattern + "\"");
  result.left_ = result.parse_side(pattern.substr(0, arrow), where, true);
  result.right_ = result.parse_side(pattern.substr(arrow + 2), where, false);
  size_t used = 0;
  for (const auto& dimension : result.right_) used += dimension.size();
  if (used != result.names_.size()) {
    throw Error(where, "the same axes on both sides", str("\"", pattern, "\", which loses an axis"));
  }
  if (result.names_.size() > Shape::kMaxRank) {
    throw Error(where, str("at most ", Shape::kMaxRank, " axes"), "\"" + pattern + "\"");
  }
  return result;
}

bool Rearrange::has_axis(const std::string& name) const {
  return std::find(names_.begin(), names_.end(), name) != names_.end();
}

// The extent of every named axis; within a dimension the one that is not given follows from the rest.
std::vector<int64_t> Rearrange::extents(const Shape& from, const std::map<std::string, int64_t>& sizes,
                                        const std::string& where) const {
  const auto fail = [&](const std::string& got) { throw Error(where, "a shape that fits \"" + pattern_ + "\"", got); };
  if (from.rank() != static_cast<int>(left_.size())) fail(from.to_string());
  std::vector<int64_t> result(names_.size(), -1);
  for (size_t i = 0; i < names_.size(); ++i) {
    if (const auto given = sizes.find(names_[i]); given != sizes.end()) result[i] = given->second;
  }
  for (int d = 0; d < from.rank(); ++d) {
    int64_t known = 1;
    int open = -1;
    for (const int axis : left_[d]) {
      if (result[axis] < 0) {
        if (open >= 0) fail(str("no size for \"", names_[open], "\" or \"", names_[axis], "\""));
        open = axis;
      } else if (__builtin_mul_overflow(known, result[axis], &known)) {
        fail(from.to_string());
      }
    }
    if (open >= 0 && known > 0 && from[d] % known == 0) {
      result[open] = from[d] / known;
      known = from[d];
    }
    if ((open >= 0 && result[open] < 0) || known != from[d]) fail(from.to_string());
  }
  return result;
}

Shape Rearrange::joined(const Side& side, const std::vector<int64_t>& extents) const {
  Shape shape;
  for (const auto& dimension : side) {
    int64_t extent = 1;
    for (const int axis : dimension) extent *= extents[axis];
    shape.push_back(extent);
  }
  return shape;
}

Shape Rearrange::shape(const Shape& from, const std::map<std::string, int64_t>& sizes, const std::string& where) const {
  return joined(right_, extents(from, sizes, where));
}

Tensor Rearrange::apply(const Tensor& from, const std::map<std::string, int64_t>& sizes,
                        const std::string& where) const {
  const std::vector<int64_t> extent = extents(from.shape(), sizes, where);
  Shape split;  // names_ is in the left side's order, so this is one axis a name
  for (const int64_t e : extent) split.push_back(e);
  const Tensor parts = from.reshape(split);
  Shape shape, strides;
  for (const auto& dimension : right_) {
    for (const int axis : dimension) {
      shape.push_back(parts.shape()[axis]);
      strides.push_back(parts.strides()[axis]);
    }
  }
  const Tensor moved(parts.storage(), parts.dtype(), shape, strides, parts.offset());
  return moved.reshape(joined(right_, extent));
}

}  // namespace vitrail::weights
