// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

#include "vitrail/base/base64_internal.h"
#include "vitrail/base/gzip_internal.h"
#include "vitrail/base/text.h"
#include "vitrail/explain/arrays_internal.h"

namespace vitrail::explain {
namespace {

constexpr double kByteTolerance = 1e-5;

template <class T>
void append(std::string& bytes, const std::vector<T>& values) {
  bytes.append(reinterpret_cast<const char*>(values.data()), values.size() * sizeof(T));
}

// The inverse of chosen_rows(), with zeros for the rows that were not chosen.
Tensor on_all_rows(const Tensor& chosen, const Shape& shape, const std::vector<int64_t>& rows) {
  if (rows.empty()) return chosen.view(shape);
  const Tensor all = Tensor::zeros(shape);
  const int64_t columns = all.size(-1), tokens = all.size(-2);
  const auto count = static_cast<int64_t>(rows.size());
  for (int64_t i = 0; i < chosen.numel() / columns; ++i) {
    const int64_t row = i / count * tokens + rows[static_cast<size_t>(i % count)];
    std::copy_n(chosen.data<float>() + i * columns, columns, all.data<float>() + row * columns);
  }
  return all;
}

std::vector<int8_t> quantize(const Tensor& values, std::vector<float>& scales) {
  const int64_t columns = values.size(-1);
  std::vector<int8_t> result;
  for (int64_t row = 0; row < values.numel() / columns; ++row) {
    const float* const x = values.data<float>() + row * columns;
    float largest = 0;
    for (int64_t i = 0; i < columns; ++i) largest = std::max(largest, std::fabs(x[i]));  // NaN stays out
    const float scale = std::isfinite(largest) && largest > 0 ? largest / 127 : 1;
    scales.push_back(scale);
    for (int64_t i = 0; i < columns; ++i)
      result.push_back(std::isfinite(x[i]) ? static_cast<int8_t>(std::lround(x[i] / scale)) : int8_t{0});
  }
  return result;
}

}  // namespace

Tensor chosen_rows(const Tensor& values, const std::vector<int64_t>& rows) {
  const Tensor all = values.to(DType::f32).contiguous();
  if (rows.empty()) return all;
  const int64_t columns = all.size(-1), tokens = all.size(-2), groups = all.numel() / (tokens * columns);
  Shape shape = all.shape();
  shape[shape.rank() - 2] = std::ssize(rows);
  const Tensor chosen = Tensor::empty(shape);
  const auto count = std::ssize(rows);
  for (int64_t i = 0; i < groups * count; ++i) {
    const int64_t row = i / count * tokens + rows[static_cast<size_t>(i % count)];
    std::copy_n(all.data<float>() + row * columns, columns, chosen.data<float>() + i * columns);
  }
  return chosen;
}

nlohmann::ordered_json finite_or_text(double value) {
  if (std::isfinite(value)) return value;
  return std::isnan(value) ? "nan" : value > 0 ? "inf" : "-inf";
}

double max_difference(const Tensor& a, const Tensor& b) {
  double largest = 0;
  const Tensor x = a.contiguous(), y = b.contiguous();
  for (int64_t i = 0; i < x.numel(); ++i) {
    const double difference =
        std::fabs(static_cast<double>(x.data<float>()[i]) - static_cast<double>(y.data<float>()[i]));
    if (!std::isfinite(difference)) return std::numeric_limits<double>::infinity();
    largest = std::max(largest, difference);
  }
  return largest;
}

size_t Arrays::place(size_t alignment) {
  std::string& blob = blobs_.back();
  blob.resize((blob.size() + alignment - 1) / alignment * alignment);
  return blob.size();
}

Tensor Arrays::add(const std::string& name, const Tensor& values, Encoding encoding, const std::vector<int64_t>& rows) {
  const Tensor chosen = chosen_rows(values, rows);
  nlohmann::ordered_json entry{{"blob", blobs_.size() - 1}, {"offset", place(sizeof(float))}};
  entry["shape"] = std::vector<int64_t>(values.shape().begin(), values.shape().end());
  Tensor decoded = chosen;
  if (encoding == Encoding::f32) {
    entry["dtype"] = "f32";
    blobs_.back().append(reinterpret_cast<const char*>(chosen.raw()), static_cast<size_t>(chosen.numel()) * 4);
  } else if (encoding == Encoding::f16) {
    entry["dtype"] = "f16";
    const Tensor half = chosen.to(DType::f16);
    blobs_.back().append(reinterpret_cast<const char*>(half.raw()), static_cast<size_t>(half.numel()) * 2);
    decoded = half.to(DType::f32);
  } else {
    entry["dtype"] = "i8";
    std::vector<float> scales;
    const std::vector<int8_t> integers = quantize(chosen, scales);
    append(blobs_.back(), integers);
    entry["scales"] = place(sizeof(float));
    append(blobs_.back(), scales);
    decoded = Tensor::empty(chosen.shape());
    for (size_t i = 0; i < integers.size(); ++i)
      decoded.data<float>()[i] = static_cast<float>(integers[i]) * scales[i / static_cast<size_t>(chosen.size(-1))];
  }
  if (!rows.empty()) entry["rows"] = rows;
  entry["max_error"] = finite_or_text(max_difference(decoded, chosen));
  tensors_[name] = std::move(entry);
  return on_all_rows(decoded, values.shape(), rows);
}

bool Arrays::add_bytes(const std::string& name, const Tensor& values, const std::vector<ChannelScale>& channels) {
  const Tensor x = values.contiguous(), decoded = Tensor::empty(values.shape());
  const int64_t pixels = x.size(2) * x.size(3);
  std::vector<uint8_t> bytes(static_cast<size_t>(x.numel()));
  nlohmann::ordered_json scales = nlohmann::ordered_json::array();
  for (const auto& [scale, offset] : channels) scales.push_back({scale, offset});
  for (int64_t i = 0; i < x.numel(); ++i) {
    const auto& [scale, offset] = channels[static_cast<size_t>(i / pixels % x.size(1))];
    const double byte = std::nearbyint((static_cast<double>(x.data<float>()[i]) - offset) / scale);
    if (!(byte >= 0 && byte <= 255)) return false;
    bytes[static_cast<size_t>(i)] = static_cast<uint8_t>(byte);
    decoded.data<float>()[i] = static_cast<float>(byte * scale + offset);
  }
  const double error = max_difference(decoded, x);
  if (!(error <= kByteTolerance)) return false;
  tensors_[name] = {{"blob", blobs_.size() - 1},
                    {"offset", place(sizeof(float))},
                    {"shape", std::vector<int64_t>(x.shape().begin(), x.shape().end())},
                    {"dtype", "u8"},
                    {"channels", scales},
                    {"max_error", error}};
  append(blobs_.back(), bytes);
  return true;
}

size_t Arrays::raw_bytes() const {
  size_t bytes = 0;
  for (const std::string& blob : blobs_) bytes += blob.size();
  return bytes;
}

std::string Arrays::elements() const {
  std::string html;
  for (size_t i = 0; i < blobs_.size(); ++i) {
    html += str("<script type=\"application/octet-stream;base64\" id=\"blob-", i, "\">");
    html += to_base64(gzip(std::as_bytes(std::span(blobs_[i])))) + "</script>\n";
  }
  return html;
}

}  // namespace vitrail::explain
