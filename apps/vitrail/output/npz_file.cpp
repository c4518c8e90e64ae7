// SPDX-License-Identifier: Apache-2.0
#include "apps/vitrail/output/npz_file.h"

#include <algorithm>
#include <limits>
#include <numeric>

#include "vitrail/base/npy_header_internal.h"
#include "vitrail/base/utf8_internal.h"

namespace vitrail::app {
namespace {

// The code points of UTF-8.
std::u32string code_points(const std::string& text) {
  std::u32string result;
  for (size_t at = 0; at < text.size();) {
    const size_t length = utf8_length(std::string_view(text).substr(at));
    auto point = static_cast<char32_t>(static_cast<unsigned char>(text[at]));
    if (length > 1) point &= 0x7Fu >> length;  // the first byte of n has n leading ones and a zero
    for (size_t i = 1; i < length; ++i) point = point << 6 | (static_cast<unsigned char>(text[at + i]) & 0x3Fu);
    result += point;
    at += length;
  }
  return result;
}

}  // namespace

NpzFile::NpzFile(const std::string& path, DType dtype) : where_(path), archive_(path), dtype_(dtype) {}

std::string NpzFile::header(int64_t rows) const {
  std::vector<int64_t> shape{rows};
  shape.insert(shape.end(), row_shape_.begin(), row_shape_.end());
  return npy_header(where_, npy_descr(dtype_), shape);
}

void NpzFile::begin(std::span<const int64_t> row_shape) {
  row_shape_.assign(row_shape.begin(), row_shape.end());
  row_elements_ = std::accumulate(row_shape.begin(), row_shape.end(), int64_t{1}, std::multiplies<>());
  archive_.begin("features.npy", header(std::numeric_limits<int64_t>::max()).size());
}

void NpzFile::write_row(const float* values) {
  const auto count = static_cast<size_t>(row_elements_);
  if (dtype_ == DType::f16) {
    std::vector<Float16> halves(count);
    std::transform(values, values + count, halves.begin(), [](float value) { return Float16(value); });
    archive_.write(halves.data(), count * sizeof(Float16));
  } else {
    archive_.write(values, count * sizeof(float));
  }
  ++rows_;
}

// numpy's strings have one length, in code points of four bytes; shorter ones end in zeros.
void NpzFile::write_paths(const std::vector<std::string>& paths) {
  std::vector<std::u32string> strings;
  size_t length = 1;
  for (const std::string& path : paths) {
    strings.push_back(code_points(escape_non_utf8(path)));
    length = std::max(length, strings.back().size());
  }
  const auto count = static_cast<int64_t>(paths.size());
  const std::string front = npy_header(where_, "<U" + std::to_string(length), std::span(&count, 1));
  archive_.begin("paths.npy", front.size());
  for (std::u32string& string : strings) {
    string.resize(length, U'\0');
    archive_.write(string.data(), length * sizeof(char32_t));
  }
  archive_.end(front);
}

void NpzFile::finish(const std::vector<std::string>& paths) {
  archive_.end(header(rows_));
  write_paths(paths);
  archive_.commit();
}

void NpzArrays::add(const std::string& name, const Tensor& tensor) {
  if (!names_.insert(name).second) return;
  const Tensor values = tensor.to(DType::f32).contiguous();
  const Shape shape = values.shape();
  const std::string header = npy_header(where_, npy_descr(DType::f32), std::span(shape.begin(), shape.end()));
  archive_.begin(name + ".npy");
  archive_.write(header.data(), header.size());
  archive_.write(values.data<float>(), static_cast<size_t>(values.numel()) * sizeof(float));
  archive_.end();
}

}  // namespace vitrail::app
