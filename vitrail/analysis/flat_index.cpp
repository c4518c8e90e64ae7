// SPDX-License-Identifier: Apache-2.0
// The layout is that of faiss/impl/index_write.cpp: little-endian and without padding.
#include "vitrail/analysis/flat_index.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

#include "vitrail/base/error.h"
#include "vitrail/base/mapped_file_internal.h"

namespace vitrail::analysis {
namespace {

constexpr std::string_view kFlatInnerProduct = "IxFI", kScalarQuantizer = "IxSQ";
constexpr int64_t kMaxWidth = 1 << 20;
constexpr int32_t kInnerProduct = 0;       // faiss::METRIC_INNER_PRODUCT
constexpr int32_t kEightBits = 0;          // faiss::ScalarQuantizer::QT_8bit
constexpr int64_t kUnusedField = 1 << 20;  // as FAISS writes it, twice

template <class T>
void append(std::string& bytes, T value) {
  bytes.append(reinterpret_cast<const char*>(&value), sizeof value);
}

// FAISS's QT_8bit: the value's place in its column's range, rounded down.
uint8_t code_of(float value, float min, float difference) {
  const float place = difference != 0 ? std::clamp((value - min) / difference, 0.0f, 1.0f) : 0.0f;
  return static_cast<uint8_t>(place * 255);
}

class HeaderReader {
 public:
  HeaderReader(std::string where, std::span<const std::byte> bytes) : where_(std::move(where)), bytes_(bytes) {}

  template <class T>
  T next() {
    T value;
    std::memcpy(&value, take(sizeof value), sizeof value);
    return value;
  }
  const std::byte* take(uint64_t size) {
    if (size > bytes_.size())
      throw Error(where_, str(size, " more bytes"), str(bytes_.size(), "; the file is truncated"));
    const std::byte* const data = bytes_.data();
    bytes_ = bytes_.subspan(size);
    return data;
  }
  template <class T>
  void expect(T value, const char* what) {
    const T got = next<T>();
    if (got != value) throw Error(where_, str(what, " ", value), str(got));
  }
  // The elements of a vector, whose number is in front of them.
  const std::byte* elements(int64_t count, size_t size) {
    expect<uint64_t>(static_cast<uint64_t>(count), "a number of elements of");
    return take(static_cast<uint64_t>(count) * size);
  }
  void expect_end() const {
    if (!bytes_.empty()) throw Error(where_, "the end of the file", str(bytes_.size(), " more bytes"));
  }

 private:
  std::string where_;
  std::span<const std::byte> bytes_;
};

}  // namespace

ColumnRanges::ColumnRanges(int64_t width)
    : min_(static_cast<size_t>(width), std::numeric_limits<float>::max()),
      max_(static_cast<size_t>(width), std::numeric_limits<float>::lowest()) {}

void ColumnRanges::include(const float* rows, int64_t count) {
  for (int64_t r = 0; r < count; ++r, rows += min_.size()) {
    for (size_t i = 0; i < min_.size(); ++i) {
      min_[i] = std::min(min_[i], rows[i]);
      max_[i] = std::max(max_[i], rows[i]);
    }
  }
}

std::vector<float> ColumnRanges::trained() const {
  std::vector<float> result = min_;
  for (size_t i = 0; i < min_.size(); ++i) result.push_back(max_[i] - min_[i]);
  return result;
}

FlatIndex::FlatIndex(const std::filesystem::path& path) : file_(std::make_unique<MappedFile>(path)) {
  const std::string where = path.string();
  HeaderReader header(where, file_->bytes());
  const std::string_view kind(reinterpret_cast<const char*>(header.take(4)), 4);
  if (kind != kFlatInnerProduct && kind != kScalarQuantizer)
    throw Error(where, "an index of `vitrail index` (FAISS's IxFI or IxSQ)", "another format");
  dtype_ = kind == kScalarQuantizer ? DType::i8 : DType::f32;
  width_ = header.next<int32_t>();
  count_ = header.next<int64_t>();
  if (width_ < 1 || width_ > kMaxWidth) throw Error(where, str("a width of 1 to ", kMaxWidth), str(width_));
  if (count_ < 0 || count_ > std::numeric_limits<int64_t>::max() / (4 * width_))
    throw Error(where, "a number of vectors that fits 64 bits", str(count_));
  header.take(2 * sizeof kUnusedField + 1);  // the last byte: is_trained
  header.expect(kInnerProduct, "the metric of inner products,");
  if (dtype_ == DType::f32) {
    codes_ = header.elements(count_ * width_, sizeof(float));
  } else {
    header.expect(kEightBits, "the quantizer QT_8bit,");
    header.take(sizeof(int32_t) + sizeof(float));  // how the ranges were found
    for (int i = 0; i < 2; ++i) header.expect(static_cast<uint64_t>(width_), "a width of");
    const auto columns = static_cast<size_t>(width_);
    std::vector<float> trained(2 * columns);
    std::memcpy(trained.data(), header.elements(2 * width_, sizeof(float)), 2 * columns * sizeof(float));
    for (size_t i = 0; i < columns; ++i) {
      scale_.push_back(trained[columns + i] / 255);
      offset_.push_back(trained[i] + scale_[i] / 2);
    }
    codes_ = header.elements(count_ * width_, 1);
  }
  header.expect_end();
}

FlatIndex::~FlatIndex() = default;

void FlatIndex::read(int64_t first, int64_t count, float* values) const {
  if (dtype_ == DType::f32) {
    const auto row_bytes = static_cast<size_t>(width_) * sizeof(float);
    std::memcpy(values, codes_ + static_cast<size_t>(first) * row_bytes, static_cast<size_t>(count) * row_bytes);
    return;
  }
  const auto* codes = reinterpret_cast<const uint8_t*>(codes_) + first * width_;
  for (int64_t r = 0; r < count; ++r, codes += width_, values += width_) {
    for (size_t i = 0; i < scale_.size(); ++i) values[i] = offset_[i] + scale_[i] * static_cast<float>(codes[i]);
  }
}

FlatIndexWriter::FlatIndexWriter(const std::filesystem::path& path, DType dtype, int64_t width,
                                 std::vector<float> trained)
    : file_(path), dtype_(dtype), width_(width), trained_(std::move(trained)) {
  if (width < 1 || width > kMaxWidth) throw Error(path.string(), str("a width of 1 to ", kMaxWidth), str(width));
  write_header();
}

void FlatIndexWriter::write_header() {
  std::string bytes(dtype_ == DType::f32 ? kFlatInnerProduct : kScalarQuantizer);
  append(bytes, static_cast<int32_t>(width_));
  append(bytes, count_);
  append(bytes, kUnusedField);
  append(bytes, kUnusedField);
  append(bytes, uint8_t{1});  // is_trained
  append(bytes, kInnerProduct);
  if (dtype_ != DType::f32) {
    append(bytes, kEightBits);
    append(bytes, int32_t{0});  // RS_minmax
    append(bytes, 0.0f);        // its argument
    append(bytes, static_cast<uint64_t>(width_));
    append(bytes, static_cast<uint64_t>(width_));  // bytes of a vector
    append(bytes, static_cast<uint64_t>(trained_.size()));
    for (const float value : trained_) append(bytes, value);
  }
  append(bytes, static_cast<uint64_t>(count_ * width_));
  file_.write(bytes);
}

void FlatIndexWriter::add(const float* rows, int64_t count) {
  const auto columns = static_cast<size_t>(width_), elements = static_cast<size_t>(count) * columns;
  count_ += count;
  if (dtype_ == DType::f32) return file_.write(rows, elements * sizeof(float));
  std::vector<uint8_t> codes(elements);
  for (size_t i = 0; i < elements; ++i)
    codes[i] = code_of(rows[i], trained_[i % columns], trained_[columns + i % columns]);
  file_.write(codes.data(), codes.size());
}

AtomicFile& FlatIndexWriter::finish() {
  file_.seek(0);
  write_header();
  return file_;
}

}  // namespace vitrail::analysis
