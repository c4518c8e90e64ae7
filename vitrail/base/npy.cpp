// SPDX-License-Identifier: Apache-2.0
#include "vitrail/base/npy.h"

#include <cstring>
#include <string_view>

#include "vitrail/base/error.h"
#include "vitrail/base/mapped_file.h"

namespace vitrail {
namespace {

constexpr std::string_view kMagic = "\x93NUMPY";
constexpr size_t kPreamble = 10;  // magic, two bytes of version, two bytes of header length
constexpr size_t kAlignment = 64;
constexpr size_t kRowDigits = 21;  // room that numpy keeps for the first axis, so that a header can be rewritten

// What a file begins with, byte for byte as numpy.save writes it.  Its length does not depend on the first axis.
std::string header_bytes(const std::string& where, DType dtype, std::span<const int64_t> shape) {
  std::string text = str("{'descr': '", dtype == DType::f32 ? "<f4" : "<i8", "', 'fortran_order': False, 'shape': (");
  for (size_t i = 0; i < shape.size(); ++i) text += str(i == 0 ? "" : ", ", shape[i]);
  text += shape.size() == 1 ? ",), }" : "), }";
  if (!shape.empty()) text.append(kRowDigits - std::to_string(shape[0]).size(), ' ');
  text.append(kAlignment - (kPreamble + text.size() + 1) % kAlignment, ' ');
  text += '\n';
  if (text.size() > UINT16_MAX) throw Error(where, "fewer axes", str(shape.size()));
  std::string bytes(kMagic);
  bytes += {'\x01', '\x00', static_cast<char>(text.size() & 255), static_cast<char>(text.size() >> 8)};
  return bytes + text;
}

int64_t element_count(const std::string& where, std::span<const int64_t> shape) {
  int64_t count = 1;
  for (const int64_t side : shape) {
    if (side < 0 || __builtin_mul_overflow(count, side, &count)) throw Error(where, "a shape that fits", str(side));
  }
  return count;
}

std::vector<int64_t> with_rows(int64_t rows, std::span<const int64_t> row_shape) {
  std::vector<int64_t> shape{rows};
  shape.insert(shape.end(), row_shape.begin(), row_shape.end());
  return shape;
}

template <class T>
void write_whole(const std::filesystem::path& path, std::span<const int64_t> shape, const T* values) {
  const std::string where = path.string();
  AtomicFile file(path);
  file.write(header_bytes(where, DTypeOf<T>::value, shape));
  file.write(values, static_cast<size_t>(element_count(where, shape)) * sizeof(T));
  file.commit();
}

// Picks the three entries out of the header's Python literal.  numpy writes them in alphabetical order with single
// quotes; the spacing is not relied upon.
class HeaderReader {
 public:
  HeaderReader(std::string where, std::string_view text) : where_(std::move(where)), text_(text) {}

  DType dtype() {
    const std::string_view descr = value_of("'descr'");
    if (descr.starts_with("'<f4'")) return DType::f32;
    if (descr.starts_with("'<f8'")) return DType::f64;
    if (descr.starts_with("'<i8'")) return DType::i64;
    throw Error(where_, "'descr' '<f4', '<f8' or '<i8'", std::string(descr.substr(0, 8)));
  }

  void require_c_order() {
    if (!value_of("'fortran_order'").starts_with("False")) throw Error(where_, "C order", "Fortran order");
  }

  std::vector<int64_t> shape() {
    std::string_view rest = value_of("'shape'");
    const size_t end = rest.find(')');
    if (!rest.starts_with('(') || end == rest.npos) throw Error(where_, "'shape' to be a tuple", std::string(rest));
    std::vector<int64_t> sides;
    bool in_number = false;
    for (const char c : rest.substr(1, end - 1)) {
      const bool digit = c >= '0' && c <= '9';
      if (!digit && c != ' ' && c != ',' && c != 'L') throw Error(where_, "sizes in 'shape'", std::string(1, c));
      if (digit && !in_number) sides.push_back(0);
      in_number = digit;
      if (!digit) continue;
      int64_t& side = sides.back();
      if (side > (INT64_MAX - 9) / 10) throw Error(where_, "a shape that fits", "a larger one");
      side = side * 10 + (c - '0');
    }
    return sides;
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

struct Parts {
  std::string_view header, elements;
};

Parts split(const std::string& where, std::string_view bytes) {
  if (!bytes.starts_with(kMagic)) throw Error(where, "an .npy file", "another format");
  const auto byte = [&](size_t i) { return static_cast<size_t>(static_cast<unsigned char>(bytes[i])); };
  if (bytes.size() < kPreamble) throw Error(where, "an .npy header", "the end of the file");
  const size_t version = byte(6);
  if (version < 1 || version > 3) throw Error(where, ".npy version 1.0 to 3.0", str(version, ".", byte(7)));
  const size_t begin = version == 1 ? 10 : 12;  // the header's length takes four bytes from version 2.0 on
  if (bytes.size() < begin) throw Error(where, "an .npy header", "the end of the file");
  size_t length = byte(8) | byte(9) << 8;
  if (version > 1) length |= byte(10) << 16 | byte(11) << 24;
  if (length > bytes.size() - begin) throw Error(where, str(length, " bytes of header"), "the end of the file");
  return {bytes.substr(begin, length), bytes.substr(begin + length)};
}

}  // namespace

NpyWriter::NpyWriter(const std::filesystem::path& path, DType dtype, std::span<const int64_t> row_shape, int64_t rows)
    : where_(path.string()),
      file_(path),
      dtype_(dtype),
      row_shape_(row_shape.begin(), row_shape.end()),
      announced_(rows),
      row_elements_(element_count(where_, row_shape)) {
  if (dtype != DType::f32 && dtype != DType::i64) throw Error(where_, "dtype f32 or i64", name_of(dtype));
  file_.write(header_bytes(where_, dtype, with_rows(INT64_MAX, row_shape)));  // room for any number of rows
}

void NpyWriter::write(const void* values, DType dtype, int64_t count) {
  if (dtype != dtype_) throw Error(where_, str("rows of ", name_of(dtype_)), name_of(dtype));
  file_.write(values, static_cast<size_t>(count * row_elements_) * size_of(dtype));
  written_ += count;
}

void NpyWriter::finish() {
  if (announced_ >= 0 && written_ != announced_) throw Error(where_, str(announced_, " rows"), str(written_));
  file_.seek(0);
  file_.write(header_bytes(where_, dtype_, with_rows(written_, row_shape_)));
  file_.commit();
}

void write_npy(const std::filesystem::path& path, std::span<const int64_t> shape, const float* values) {
  write_whole(path, shape, values);
}

void write_npy(const std::filesystem::path& path, std::span<const int64_t> shape, const int64_t* values) {
  write_whole(path, shape, values);
}

NpyArray read_npy(const std::filesystem::path& path) {
  const std::string where = path.string();
  const MappedFile file(path);
  const Parts parts = split(where, {reinterpret_cast<const char*>(file.bytes().data()), file.bytes().size()});
  HeaderReader header(where, parts.header);
  NpyArray array;
  array.dtype = header.dtype();
  header.require_c_order();
  array.shape = header.shape();
  const auto count = static_cast<size_t>(element_count(where, array.shape));
  const size_t available = parts.elements.size();
  if (available / size_of(array.dtype) != count || available % size_of(array.dtype) != 0) {
    throw Error(where, str(count, " elements of ", name_of(array.dtype)), str(available, " bytes"));
  }
  const auto copy_to = [&](auto& values) {
    values.resize(count);
    if (count > 0) std::memcpy(values.data(), parts.elements.data(), available);
  };
  if (array.dtype == DType::f32) copy_to(array.f32);
  if (array.dtype == DType::f64) copy_to(array.f64);
  if (array.dtype == DType::i64) copy_to(array.i64);
  return array;
}

}  // namespace vitrail
