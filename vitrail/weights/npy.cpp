// SPDX-License-Identifier: Apache-2.0
#include "vitrail/weights/npy_internal.h"

#include <algorithm>
#include <charconv>
#include <cstring>
#include <string_view>

#include "vitrail/base/error.h"

namespace vitrail::weights {
namespace {

// Parses the dictionary {'descr': '<f4', 'fortran_order': False, 'shape': (3, 4), }.
class HeaderParser {
 public:
  HeaderParser(std::string_view text, const std::string& where) : text_(text), where_(where) {}

  NpyHeader parse() {
    NpyHeader header;
    unsigned seen = 0;
    expect('{');
    while (!accept('}')) {
      const std::string_view key = quoted();
      expect(':');
      if (key == "descr") {
        set_type(header);
        seen |= 1;
      } else if (key == "fortran_order") {
        header.fortran_order = boolean();
        seen |= 2;
      } else if (key == "shape") {
        header.shape = tuple();
        seen |= 4;
      } else {
        fail("the key \"" + std::string(key) + "\"");
      }
      if (!accept(',')) {
        expect('}');
        break;
      }
    }
    if (seen != 7) fail("a header without descr, fortran_order or shape");
    return header;
  }

 private:
  [[noreturn]] void fail(const std::string& got) const {
    throw Error(where_, "a .npy header with descr, fortran_order and shape", got);
  }
  void skip_blanks() {
    while (at_ < text_.size() && (text_[at_] == ' ' || text_[at_] == '\n')) ++at_;
  }
  bool accept(char c) {
    skip_blanks();
    if (at_ >= text_.size() || text_[at_] != c) return false;
    ++at_;
    return true;
  }
  void expect(char c) {
    if (!accept(c)) fail(str("no '", c, "' at character ", at_));
  }
  bool accept_word(std::string_view word) {
    skip_blanks();
    if (!text_.substr(at_).starts_with(word)) return false;
    at_ += word.size();
    return true;
  }
  std::string_view quoted() {
    skip_blanks();
    const char quote = at_ < text_.size() ? text_[at_] : ' ';
    if (quote != '\'' && quote != '"') fail(str("no string at character ", at_));
    const size_t end = text_.find(quote, at_ + 1);
    if (end == std::string_view::npos) fail("an unterminated string");
    const std::string_view content = text_.substr(at_ + 1, end - at_ - 1);
    at_ = end + 1;
    return content;
  }
  bool boolean() {
    if (accept_word("True")) return true;
    if (!accept_word("False")) fail("a fortran_order that is neither True nor False");
    return false;
  }
  Shape tuple() {
    Shape shape;
    expect('(');
    while (!accept(')')) {
      skip_blanks();
      int64_t extent = -1;
      const auto [end, error] = std::from_chars(text_.data() + at_, text_.data() + text_.size(), extent);
      if (error != std::errc() || extent < 0) fail("a shape with an element that is no non-negative integer");
      at_ = static_cast<size_t>(end - text_.data());
      accept_word("L");  // Python 2's long
      if (shape.rank() == Shape::kMaxRank) fail(str("more than ", Shape::kMaxRank, " axes"));
      shape.push_back(extent);
      if (!accept(',')) {
        expect(')');
        break;
      }
    }
    return shape;
  }
  void set_type(NpyHeader& header) {
    skip_blanks();
    if (at_ < text_.size() && text_[at_] == '[') fail("a structured array");
    const std::string_view name = quoted();
    constexpr std::pair<std::string_view, DType> kTypes[] = {
        {"<f8", DType::f64}, {"<f4", DType::f32}, {"<f2", DType::f16}, {"<i8", DType::i64},    {"<i4", DType::i32},
        {"|i1", DType::i8},  {"<i1", DType::i8},  {"|u1", DType::u8},  {"|b1", DType::boolean}};
    for (const auto& [known, dtype] : kTypes) {
      if (name == known) {
        header.dtype = dtype;
        return;
      }
    }
    header.unsupported_dtype = std::string(name);
    if (name.find('O') != std::string_view::npos) header.unsupported_dtype += " (an array of pickled objects, refused)";
  }

  std::string_view text_;
  std::string where_;
  size_t at_ = 0;
};

}  // namespace

NpyHeader read_npy_header(std::span<const std::byte> bytes, const std::string& where) {
  const auto byte = [&](size_t i) { return static_cast<uint64_t>(bytes[i]); };
  if (bytes.size() < 12 || std::memcmp(bytes.data(), "\x93NUMPY", 6) != 0) {
    throw Error(where, "a .npy array", str("another file of ", bytes.size(), " bytes"));
  }
  const uint64_t version = byte(6);
  if (version < 1 || version > 3) throw Error(where, ".npy version 1 to 3", str(version));
  const uint64_t begin = version == 1 ? 10 : 12;
  const uint64_t length =
      version == 1 ? byte(8) | byte(9) << 8 : byte(8) | byte(9) << 8 | byte(10) << 16 | byte(11) << 24;
  if (length > std::min<uint64_t>(bytes.size(), kMaxNpyHeader) - begin) {
    throw Error(where, "a .npy header inside the file", str("a header of ", length, " bytes"));
  }
  const std::string_view text(reinterpret_cast<const char*>(bytes.data()) + begin, length);
  NpyHeader header = HeaderParser(text, where).parse();
  checked_numel({header.shape.begin(), header.shape.end()}, where);
  header.data_offset = begin + length;
  return header;
}

Tensor read_npy(const FileBytes& bytes, uint64_t offset, uint64_t size, const NpyHeader& header) {
  if (!header.unsupported_dtype.empty()) {
    throw Error(bytes.where, "f64, f32, f16, i64, i32, i8, u8 or bool in little-endian order",
                header.unsupported_dtype);
  }
  const uint64_t count = static_cast<uint64_t>(checked_numel({header.shape.begin(), header.shape.end()}, bytes.where));
  const uint64_t available = size - std::min(size, header.data_offset);
  if (available % size_of(header.dtype) != 0 || available / size_of(header.dtype) != count) {
    throw Error(bytes.where, str(count, " elements of ", name_of(header.dtype), " for shape ", header.shape),
                str(available, " bytes"));
  }
  if (!header.fortran_order) return bytes.tensor(offset + header.data_offset, header.dtype, header.shape);
  Shape reversed = header.shape;
  std::reverse(&reversed[0], &reversed[0] + reversed.rank());
  const Tensor stored = bytes.tensor(offset + header.data_offset, header.dtype, reversed);
  Shape strides = stored.strides();
  std::reverse(&strides[0], &strides[0] + strides.rank());
  return Tensor(stored.storage(), header.dtype, header.shape, strides, 0);
}

}  // namespace vitrail::weights
