// SPDX-License-Identifier: Apache-2.0
#include "apps/vitrail/output/tensor_text.h"

#include <fmt/core.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <vector>

#include "vitrail/base/error.h"

namespace vitrail::app {
namespace {

std::string trimmed(const std::string& text) {
  const auto first = text.find_first_not_of(" \t"), last = text.find_last_not_of(" \t");
  return first == std::string::npos ? "" : text.substr(first, last - first + 1);
}

std::vector<std::string> split(const std::string& text, char separator) {
  std::vector<std::string> parts(1);
  for (const char c : text) c == separator ? parts.emplace_back() : parts.back() += c, void();
  for (std::string& part : parts) part = trimmed(part);
  return parts;
}

int64_t integer(const std::string& text, const std::string& slice) {
  int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) {
    throw Error("--slice", "integers, a:b, : or ... between the brackets", "\"" + slice + "\"");
  }
  return value;
}

// Applies one index or range of the slice to one axis.  An index drops the axis.
Tensor apply_part(const Tensor& tensor, int axis, const std::string& part, const std::string& slice, bool& dropped) {
  const int64_t extent = tensor.size(axis);
  const auto colon = part.find(':');
  dropped = colon == std::string::npos;
  if (dropped) {
    const int64_t index = integer(part, slice);
    if (index < -extent || index >= extent) {
      throw Error("--slice", str("an index within ", tensor.shape(), " on axis ", axis), part);
    }
    return tensor.select(axis, index);
  }
  auto bound = [&](const std::string& text, int64_t default_value) {
    if (trimmed(text).empty()) return default_value;
    const int64_t value = integer(trimmed(text), slice);
    return std::clamp<int64_t>(value < 0 ? value + extent : value, 0, extent);
  };
  const int64_t first = bound(part.substr(0, colon), 0), last = bound(part.substr(colon + 1), extent);
  return tensor.narrow(axis, first, std::max<int64_t>(0, last - first));
}

// Whether four decimals would hide small values or are lost beside large ones.
bool needs_exponent(const Tensor& tensor) {
  const Tensor values = tensor.to(DType::f64).contiguous();
  double largest = 0;
  for (int64_t i = 0; i < values.numel(); ++i) {
    const double size = std::abs(values.data<double>()[i]);
    if (std::isfinite(size)) largest = std::max(largest, size);
  }
  return largest > 0 && (largest < 0.01 || largest >= 1e6);
}

void append_values(const Tensor& tensor, int depth, bool exponent, std::string& text) {
  if (tensor.rank() == 0) {
    text += exponent ? fmt::format("{:.4e}", tensor.item<double>()) : fmt::format("{:.4f}", tensor.item<double>());
    return;
  }
  const int64_t extent = tensor.size(0);
  const bool abbreviate = extent > 8;
  text += "[";
  for (int64_t i = 0; i < extent; ++i) {
    if (abbreviate && i == 3) {
      text += ", ...";
      i = extent - 3;
    }
    if (i > 0) text += tensor.rank() == 1 ? ", " : ",\n" + std::string(static_cast<size_t>(depth + 1), ' ');
    append_values(tensor.select(0, i), depth + 1, exponent, text);
  }
  text += "]";
}

}  // namespace

SliceRequest parse_slice_request(const std::string& text) {
  const auto open = text.find('[');
  if (open == std::string::npos) return {text, ""};
  if (text.back() != ']') throw Error("--slice", "NAME or NAME[0, :, :3]", "\"" + text + "\"");
  return {text.substr(0, open), text.substr(open + 1, text.size() - open - 2)};
}

Tensor sliced(const Tensor& tensor, const std::string& slice) {
  if (trimmed(slice).empty()) return tensor;
  std::vector<std::string> parts = split(slice, ',');
  for (size_t i = 0; i < parts.size(); ++i) {
    if (parts[i] != "...") continue;
    const int missing = tensor.rank() - static_cast<int>(parts.size()) + 1;
    parts.erase(parts.begin() + static_cast<std::ptrdiff_t>(i));
    parts.insert(parts.begin() + static_cast<std::ptrdiff_t>(i), static_cast<size_t>(std::max(0, missing)), ":");
    break;
  }
  if (static_cast<int>(parts.size()) > tensor.rank()) {
    throw Error("--slice", str("at most ", tensor.rank(), " indices for shape ", tensor.shape()), "\"" + slice + "\"");
  }
  Tensor result = tensor;
  int axis = 0;
  for (const std::string& part : parts) {
    bool dropped = false;
    result = apply_part(result, axis, part, slice, dropped);
    if (!dropped) ++axis;
  }
  return result;
}

std::string values_text(const Tensor& tensor) {
  std::string text;
  append_values(tensor, 0, needs_exponent(tensor), text);
  return text;
}

Statistics statistics_of(const Tensor& tensor) {
  const Tensor values = tensor.to(DType::f64).contiguous();
  const double* data = values.data<double>();
  const int64_t n = values.numel();
  Statistics result;
  double finite = 0, sum = 0, squares = 0;
  for (int64_t i = 0; i < n; ++i) {
    if (std::isfinite(data[i])) ++finite, sum += data[i];
  }
  result.mean = sum / std::max(1.0, finite);
  for (int64_t i = 0; i < n; ++i) {
    if (std::isfinite(data[i])) squares += (data[i] - result.mean) * (data[i] - result.mean);
  }
  result.standard_deviation = std::sqrt(squares / std::max(1.0, finite));
  for (int64_t i = 0; i < std::min<int64_t>(5, n); ++i) result.first += fmt::format("{}{:.4f}", i ? " " : "", data[i]);
  return result;
}

}  // namespace vitrail::app
