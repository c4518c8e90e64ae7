// SPDX-License-Identifier: Apache-2.0
#include "vitrail/base/npy.h"

#include <algorithm>
#include <cstring>
#include <string_view>

#include "vitrail/base/error.h"
#include "vitrail/base/mapped_file_internal.h"
#include "vitrail/base/npy_header_internal.h"
#include "vitrail/base/text.h"

namespace vitrail {
namespace {

constexpr std::string_view kMagic = "\x93NUMPY";
constexpr size_t kPreambleBytes = 10;  // magic, two bytes of version, two bytes of header length
constexpr size_t kAlignment = 64;      // offset of the elements is a multiple of this
constexpr size_t kRowDigits = 21;      // width that numpy reserves for the first axis, to rewrite a header in place

int64_t element_count(const std::string& where, std::span<const int64_t> shape) {
  int64_t count = 1;
  for (const int64_t extent : shape) {
    const bool overflows = extent < 0 || __builtin_mul_overflow(count, extent, &count);
    if (overflows) throw Error(where, "a shape whose element count fits 64 bits", str(extent));
  }
  return count;
}

std::vector<int64_t> with_rows(int64_t rows, std::span<const int64_t> row_shape) {
  std::vector<int64_t> shape{rows};
  shape.insert(shape.end(), row_shape.begin(), row_shape.end());
  return shape;
}

template <class T>
void write_array(const std::filesystem::path& path, std::span<const int64_t> shape, const T* values) {
  const std::string where = path.string();
  AtomicFile file(path);
  file.write(npy_header(where, npy_descr(DTypeOf<T>::value), shape));
  file.write(values, static_cast<size_t>(element_count(where, shape)) * sizeof(T));
  file.commit();
}

// Extracts the three entries of the header's Python literal.  Relies on numpy's single quotes, not on its spacing.
class HeaderReader {
 public:
  HeaderReader(std::string where, std::string_view text) : where_(std::move(where)), text_(text) {}

  DType dtype() {
    const std::string_view descr = value_of("'descr'");
    if (descr.starts_with("'<f4'")) return DType::f32;
    if (descr.starts_with("'<f2'")) return DType::f16;
    if (descr.starts_with("'<f8'")) return DType::f64;
    if (descr.starts_with("'<i8'")) return DType::i64;
    throw Error(where_, "'descr' '<f4', '<f2', '<f8' or '<i8'", std::string(descr.substr(0, 8)));
  }

  void require_c_order() {
    if (!value_of("'fortran_order'").starts_with("False")) throw Error(where_, "C order", "Fortran order");
  }

  std::vector<int64_t> shape() {
    const std::string_view text = value_of("'shape'");
    const size_t end = text.find(')');
    if (!text.starts_with('(') || end == text.npos) throw Error(where_, "'shape' to be a tuple", std::string(text));
    std::vector<int64_t> extents;
    bool in_number = false;
    for (const char c : text.substr(1, end - 1)) {
      const bool digit = c >= '0' && c <= '9';  // Python 2 wrote integers with the suffix L
      if (!digit && c != ' ' && c != ',' && c != 'L') throw Error(where_, "sizes in 'shape'", std::string(1, c));
      if (digit && !in_number) extents.push_back(0);
      in_number = digit;
      if (!digit) continue;
      int64_t& extent = extents.back();
      if (extent > (INT64_MAX - 9) / 10) throw Error(where_, "a shape whose sizes fit 64 bits", "a larger one");
      extent = extent * 10 + (c - '0');
    }
    return extents;
  }

 private:
  std::string_view value_of(std::string_view key) const {
    size_t at = text_.find(key);
    if (at != text_.npos) at = text_.find(':', at + key.size());
    if (at != text_.npos) at = text_.find_first_not_of(' ', at + 1);
    if (at == text_.npos) throw Error(where_, str("an .npy header with ", key), "none");
    return text_.substr(at);
  }

  std::string where_;
  std::string_view text_;
};

struct NpySections {
  std::string_view header, elements;
};

NpySections split_sections(const std::string& where, std::string_view bytes) {
  if (!bytes.starts_with(kMagic)) throw Error(where, "an .npy file", "another format");
  const auto byte = [&](size_t i) { return static_cast<size_t>(static_cast<unsigned char>(bytes[i])); };
  if (bytes.size() < kPreambleBytes) throw Error(where, "an .npy header", "the end of the file");
  const size_t version = byte(6);
  if (version < 1 || version > 3) throw Error(where, ".npy version 1.0 to 3.0", str(version, ".", byte(7)));
  const size_t begin = version == 1 ? 10 : 12;  // from version 2.0 on, the header length has four bytes
  if (bytes.size() < begin) throw Error(where, "an .npy header", "the end of the file");
  size_t length = byte(8) | byte(9) << 8;
  if (version > 1) length |= byte(10) << 16 | byte(11) << 24;
  if (length > bytes.size() - begin) throw Error(where, str(length, " bytes of header"), "the end of the file");
  return {bytes.substr(begin, length), bytes.substr(begin + length)};
}

// A checked header, and the elements that it promises.
struct NpyContent {
  DType dtype;
  std::vector<int64_t> shape;
  std::string_view elements;
};

NpyContent content_of(std::span<const std::byte> file, const std::string& where) {
  const NpySections sections = split_sections(where, {reinterpret_cast<const char*>(file.data()), file.size()});
  HeaderReader header(where, sections.header);
  const DType dtype = header.dtype();
  header.require_c_order();
  NpyContent content{dtype, header.shape(), sections.elements};
  const auto count = static_cast<size_t>(element_count(where, content.shape));
  const size_t available = sections.elements.size();
  if (available / size_of(dtype) != count || available % size_of(dtype) != 0)
    throw Error(where, str(count, " elements of ", name_of(dtype)), str(available, " bytes"));
  return content;
}

// The elements need not be aligned.
template <class T>
void to_floats(const std::byte* elements, size_t count, float* values) {
  for (size_t i = 0; i < count; ++i) {
    T value;
    std::memcpy(&value, elements + i * sizeof(T), sizeof(T));
    values[i] = static_cast<float>(value);
  }
}

}  // namespace

const char* npy_descr(DType dtype) { return dtype == DType::f32 ? "<f4" : dtype == DType::f16 ? "<f2" : "<i8"; }

std::string npy_header(const std::string& where, const std::string& descr, std::span<const int64_t> shape) {
  std::string text = str("{'descr': '", descr, "', 'fortran_order': False, 'shape': (", join(shape));
  text += shape.size() == 1 ? ",), }" : "), }";
  if (!shape.empty()) text.append(kRowDigits - std::to_string(shape[0]).size(), ' ');
  text.append(kAlignment - (kPreambleBytes + text.size() + 1) % kAlignment, ' ');
  text += '\n';
  if (text.size() > UINT16_MAX) throw Error(where, "fewer axes", str(shape.size()));
  std::string bytes(kMagic);
  bytes += {'\x01', '\x00', static_cast<char>(text.size() & 255), static_cast<char>(text.size() >> 8)};
  return bytes + text;
}

NpyWriter::NpyWriter(const std::filesystem::path& path, DType dtype, std::span<const int64_t> row_shape, int64_t rows)
    : NpyWriter(path, dtype) {
  announced_rows_ = rows;
  begin(row_shape);
}

NpyWriter::NpyWriter(const std::filesystem::path& path, DType dtype)
    : where_(path.string()), file_(path), dtype_(dtype) {
  if (dtype != DType::f32 && dtype != DType::f16 && dtype != DType::i64)
    throw Error(where_, "dtype f32, f16 or i64", name_of(dtype));
}

void NpyWriter::begin(std::span<const int64_t> row_shape) {
  row_shape_.assign(row_shape.begin(), row_shape.end());
  row_elements_ = element_count(where_, row_shape);
  file_.write(npy_header(where_, npy_descr(dtype_),
                         with_rows(INT64_MAX, row_shape)));  // has the final length; finish() writes the number of rows
}

void NpyWriter::write_rows(const float* values, int64_t count) {
  if (dtype_ != DType::f16) return write(values, DType::f32, count);
  std::vector<Float16> halves(static_cast<size_t>(count * row_elements_));
  std::transform(values, values + halves.size(), halves.begin(), [](float value) { return Float16(value); });
  write(halves.data(), DType::f16, count);
}

void NpyWriter::write(const void* values, DType dtype, int64_t count) {
  if (dtype != dtype_) throw Error(where_, str("rows of ", name_of(dtype_)), name_of(dtype));
  file_.write(values, static_cast<size_t>(count * row_elements_) * size_of(dtype));
  written_rows_ += count;
}

void NpyWriter::finish(std::vector<AtomicFile*> companions) {
  if (announced_rows_ >= 0 && written_rows_ != announced_rows_) {
    throw Error(where_, str(announced_rows_, " rows"), str(written_rows_));
  }
  file_.seek(0);
  file_.write(npy_header(where_, npy_descr(dtype_), with_rows(written_rows_, row_shape_)));
  companions.insert(companions.begin(), &file_);
  AtomicFile::commit_together(companions);
}

void write_npy(const std::filesystem::path& path, std::span<const int64_t> shape, const float* values) {
  write_array(path, shape, values);
}

void write_npy(const std::filesystem::path& path, std::span<const int64_t> shape, const int64_t* values) {
  write_array(path, shape, values);
}

NpyArray read_npy(const std::filesystem::path& path) {
  const MappedFile file(path);
  return parse_npy(file.bytes(), path.string());
}

NpyArray parse_npy(std::span<const std::byte> file, const std::string& where) {
  const NpyContent content = content_of(file, where);
  NpyArray array;
  array.dtype = content.dtype;
  array.shape = content.shape;
  const size_t bytes = content.elements.size(), count = bytes / size_of(array.dtype);
  const auto copy_to = [&](auto& values) {
    values.resize(count);
    if (count > 0) std::memcpy(values.data(), content.elements.data(), bytes);
  };
  if (array.dtype == DType::f32) copy_to(array.f32);
  if (array.dtype == DType::f64) copy_to(array.f64);
  if (array.dtype == DType::i64) copy_to(array.i64);
  if (array.dtype == DType::f16) {
    array.f32.resize(count);
    to_floats<Float16>(reinterpret_cast<const std::byte*>(content.elements.data()), count, array.f32.data());
  }
  return array;
}

NpyRows::NpyRows(const std::filesystem::path& path) : file_(std::make_unique<MappedFile>(path)) {
  const NpyContent content = content_of(file_->bytes(), path.string());
  if (content.shape.empty() || !is_floating(content.dtype))
    throw Error(path.string(), "rows of floating-point values", content.shape.empty() ? "a scalar" : "integers");
  dtype_ = content.dtype;
  shape_ = content.shape;
  elements_ = reinterpret_cast<const std::byte*>(content.elements.data());
}

NpyRows::~NpyRows() = default;

void NpyRows::read(int64_t first, int64_t count, float* values) const {
  int64_t row = 1;
  for (size_t i = 1; i < shape_.size(); ++i) row *= shape_[i];
  const std::byte* const begin = elements_ + static_cast<size_t>(first * row) * size_of(dtype_);
  const auto elements = static_cast<size_t>(count * row);
  if (dtype_ == DType::f32) to_floats<float>(begin, elements, values);
  if (dtype_ == DType::f16) to_floats<Float16>(begin, elements, values);
  if (dtype_ == DType::f64) to_floats<double>(begin, elements, values);
}

}  // namespace vitrail
