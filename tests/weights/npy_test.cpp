// SPDX-License-Identifier: Apache-2.0
// Headers and sizes of NumPy's arrays.
#include "vitrail/weights/npy_internal.h"

#include <gtest/gtest.h>

#include <cstring>

#include "tests/support/errors.h"
#include "tests/support/messages.h"

namespace vitrail::weights {
namespace {

using testing::contains;
using testing::error_of;

std::string header(const std::string& dictionary, int version = 1) {
  std::string text = "\x93NUMPY";
  text += static_cast<char>(version);
  text += '\0';
  const size_t bytes = version == 1 ? 2 : 4;
  for (size_t i = 0; i < bytes; ++i) text += static_cast<char>(dictionary.size() >> (8 * i));
  return text + dictionary;
}
std::string of_shape(const std::string& shape, const std::string& type = "<f4", bool fortran = false) {
  return "{'descr': '" + type + "', 'fortran_order': " + (fortran ? "True" : "False") + ", 'shape': " + shape + ", }\n";
}
std::span<const std::byte> bytes_of(const std::string& text) { return std::as_bytes(std::span(text)); }

NpyHeader parse(const std::string& text) { return read_npy_header(bytes_of(text), "a.npy"); }

// The array of a file with `before` bytes in front and elements 0, 1, 2, ….
Tensor array(const std::string& dictionary, size_t elements, size_t before = 0, size_t more = 0) {
  const std::string head = header(dictionary);
  std::vector<std::byte> bytes(before);
  for (const std::byte b : bytes_of(head)) bytes.push_back(b);
  for (size_t i = 0; i < elements; ++i) {
    const auto value = static_cast<float>(i);
    const auto* raw = reinterpret_cast<const std::byte*>(&value);
    bytes.insert(bytes.end(), raw, raw + sizeof value);
  }
  bytes.resize(bytes.size() + more);
  const size_t size = bytes.size() - before;
  return read_npy(FileBytes::hold(std::move(bytes), "a.npy"), before, size, parse(head)).contiguous();
}

TEST(Npy, HeadersOfAllVersionsAreRead) {
  for (const int version : {1, 2, 3}) {
    const std::string text = header(of_shape("(3, 4)"), version);
    const NpyHeader read = parse(text + "data");
    EXPECT_EQ(read.shape, (Shape{3, 4}));
    EXPECT_EQ(read.dtype, DType::f32);
    EXPECT_FALSE(read.fortran_order);
    EXPECT_EQ(read.data_offset, text.size());
  }
  EXPECT_EQ(parse(header("{\"shape\": (2L,), \"fortran_order\": True, \"descr\": \"<i8\"}")).shape, Shape{2});
  EXPECT_TRUE(parse(header("{\"shape\": (2L,), \"fortran_order\": True, \"descr\": \"<i8\"}")).fortran_order);
  EXPECT_EQ(parse(header(of_shape("()"))).shape.rank(), 0);
  for (const auto& [name, dtype] :
       {std::pair("<f8", DType::f64), std::pair("<f4", DType::f32), std::pair("<f2", DType::f16),
        std::pair("<i8", DType::i64), std::pair("<i4", DType::i32), std::pair("|i1", DType::i8),
        std::pair("|u1", DType::u8), std::pair("|b1", DType::boolean)}) {
    EXPECT_EQ(parse(header(of_shape("(1,)", name))).dtype, dtype) << name;
    EXPECT_EQ(parse(header(of_shape("(1,)", name))).unsupported_dtype, "") << name;
  }
  EXPECT_EQ(parse(header(of_shape("(1,)", ">f4"))).unsupported_dtype, ">f4");
  EXPECT_TRUE(contains(parse(header(of_shape("(1,)", "|O"))).unsupported_dtype, "pickled objects, refused"));
}

TEST(Npy, DamagedHeadersAreErrors) {
  const std::string good = header(of_shape("(1,)"));
  for (const std::string& text : {std::string(),
                                  good.substr(0, 11),
                                  "\x92" + good.substr(1),
                                  header(of_shape("(1,)"), 4),
                                  header("{}"),
                                  header("{'descr': '<f4', 'shape': (1,)}"),
                                  header("{'fortran_order': False, 'shape': (1,)}"),
                                  header("{'descr': '<f4', 'fortran_order': False}"),
                                  header(of_shape("(-1,)")),
                                  header(of_shape("(1.5,)")),
                                  header(of_shape("(1")),
                                  header(of_shape("1")),
                                  header(of_shape("(1 2)")),
                                  header(of_shape("(a,)")),
                                  header("{'descr': '<f4', 'fortran_order': 1, 'shape': (1,)}"),
                                  header("{'x': 1}"),
                                  header("{'descr"),
                                  header("{'descr': [('a', '<f4')], 'fortran_order': False, 'shape': (1,)}"),
                                  header(of_shape("(1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1)")),
                                  header(of_shape("(9223372036854775807, 9223372036854775807)")),
                                  good.substr(0, good.size() - 5)}) {
    EXPECT_TRUE(error_of([&] { parse(text); }).starts_with("a.npy: expected ")) << text;
  }
  EXPECT_NO_THROW(parse(header(of_shape("(1,)") + std::string(60'000, ' '), 2)));
  EXPECT_THROW(parse(header(of_shape("(1,)") + std::string(66'000, ' '), 2)), Error);  // above the limit
}

TEST(Npy, TheFileHasExactlyTheElementsOfItsShape) {
  const Tensor rows = array(of_shape("(2, 3)"), 6, 5);
  EXPECT_EQ(rows.shape(), (Shape{2, 3}));
  for (int64_t i = 0; i < 6; ++i) EXPECT_EQ(rows.data<float>()[i], static_cast<float>(i));
  EXPECT_EQ(array(of_shape("()"), 1).numel(), 1);
  EXPECT_EQ(array(of_shape("(0, 3)"), 0).shape(), (Shape{0, 3}));
  for (const auto& [elements, more] :
       {std::pair(5, 0), std::pair(7, 0), std::pair(6, 1), std::pair(5, 3), std::pair(0, 0)}) {
    const std::string message = error_of(
        [&, e = static_cast<size_t>(elements), m = static_cast<size_t>(more)] { array(of_shape("(2, 3)"), e, 0, m); });
    EXPECT_TRUE(contains(message, "6 elements of f32 for shape [2, 3]")) << message;
  }
  EXPECT_TRUE(contains(error_of([] { array(of_shape("(2,)", ">f4"), 2); }), "got >f4"));
}

// Element [i, j, k] of Fortran order is at i + 2 (j + 3 k).
TEST(Npy, InFortranOrderTheFirstAxisVariesFastest) {
  const Tensor values = array(of_shape("(2, 3, 4)", "<f4", true), 24);
  ASSERT_EQ(values.shape(), (Shape{2, 3, 4}));
  for (int64_t i = 0; i < 2; ++i) {
    for (int64_t j = 0; j < 3; ++j) {
      for (int64_t k = 0; k < 4; ++k)
        EXPECT_EQ(values.data<float>()[(i * 3 + j) * 4 + k], static_cast<float>(i + 2 * (j + 3 * k)));
    }
  }
}

TEST(Npy, TheErrorSaysWhatIsWrong) {
  const std::string three = "a .npy header with descr, fortran_order and shape, got ";
  const std::pair<std::string, std::string> cases[] = {
      {"", "a .npy array, got another file of 0 bytes"},
      {header("{}").substr(0, 11), "a .npy array, got another file of 11 bytes"},
      {"\x93NUMPZ\x01 and more", "a .npy array, got another file of 16 bytes"},
      {header("          ", 0), ".npy version 1 to 3, got 0"},
      {header("          ", 4), ".npy version 1 to 3, got 4"},
      {header("{'descr': '<f4'}").substr(0, 25), "a .npy header inside the file, got a header of 16 bytes"},
      {header("{'descr': '<f4'}", 2).substr(0, 27), "a .npy header inside the file, got a header of 16 bytes"},
      {header("{}  "), three + "a header without descr, fortran_order or shape"},
      {header("x   "), three + "no '{' at character 0"},
      {header("{ 3 "), three + "no string at character 2"},
      {header("{'descr"), three + "an unterminated string"},
      {header("{'descr' '<f4'"), three + "no ':' at character 9"},
      {header("{'name': 3}"), three + "the key \"name\""},
      {header("{'descr': [('a', '<f4')]}"), three + "a structured array"},
      {header("{'descr': 3}"), three + "no string at character 10"},
      {header("{'descr': '<f4' 'shape': ()}"), three + "no '}' at character 16"},
      {header("{'fortran_order': 1}"), three + "a fortran_order that is neither True nor False"},
      {header("{'shape': 3}"), three + "no '(' at character 10"},
      {header("{'shape': (3 4)}"), three + "no ')' at character 13"},
      {header("{'shape': (3, x)}"), three + "a shape with an element that is no non-negative integer"},
      {header("{'shape': (-3,)}"), three + "a shape with an element that is no non-negative integer"},
      {header("{'shape': (9223372036854775808,)}"), three + "a shape with an element that is no non-negative integer"},
      {header("{'shape': (1, 1, 1, 1, 1, 1, 1, 1, 1)}"), three + "more than 8 axes"},
      {header("{'descr': '<f4', 'shape': ()}"), three + "a header without descr, fortran_order or shape"},
      {header("{'descr': '<f4', 'fortran_order': True}"), three + "a header without descr, fortran_order or shape"},
      {header("{'fortran_order': True, 'shape': ()}"), three + "a header without descr, fortran_order or shape"},
      {header(of_shape("(4611686018427387904, 4)")), "fewer than 2^63 elements, got a larger shape"}};
  for (const auto& [text, want] : cases) EXPECT_EQ(error_of([&, t = text] { parse(t); }), "a.npy: expected " + want);
}

TEST(Npy, HeadersMayBeWrittenInOtherWays) {
  for (const char* text : {"{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3)}",
                           "{'descr':'<f4','fortran_order':False,'shape':(2,3,),}",
                           "  {  'shape'  :  (  2L  ,  3  )  ,  'fortran_order' : False , 'descr' : '<f4' , }  \n",
                           "{\"fortran_order\": False,\n\"descr\": \"<f4\", \"shape\": (2, 3)}"}) {
    const NpyHeader read = parse(header(text));
    EXPECT_EQ(read.shape, (Shape{2, 3})) << text;
    EXPECT_EQ(read.dtype, DType::f32) << text;
    EXPECT_FALSE(read.fortran_order) << text;
    EXPECT_EQ(read.data_offset, 10 + std::strlen(text)) << text;
  }
  EXPECT_EQ(parse(header(of_shape("(1, 1, 1, 1, 1, 1, 1, 1)"))).shape.rank(), 8);
  EXPECT_EQ(parse(header(of_shape("(0,)"))).shape, Shape{0});
  EXPECT_EQ(parse(header(of_shape("(1,)", "<i1"))).dtype, DType::i8);
  EXPECT_EQ(parse(header(of_shape("(1,)", "<f8"), 3)).data_offset, header(of_shape("(1,)"), 3).size());
  for (const char* other : {"<u2", ">f8", "=f4", "<f16", "<c8", "|S3", "|i2", "<b1"})
    EXPECT_EQ(parse(header(of_shape("(1,)", other))).unsupported_dtype, other);
  EXPECT_EQ(parse(header(of_shape("(1,)", "|O8"))).unsupported_dtype, "|O8 (an array of pickled objects, refused)");
}

TEST(Npy, TheLimitOfAHeaderIs64KiB) {
  EXPECT_EQ(kMaxNpyHeader, 65536u);
  const std::string dictionary = of_shape("(1,)");
  const auto of_size = [&](size_t size) { return header(dictionary + std::string(size - dictionary.size(), ' '), 2); };
  EXPECT_EQ(parse(of_size(65524)).data_offset, 65536u);
  EXPECT_ERROR(error_of([&] { parse(of_size(65525)); }), "a.npy", "a header of 65525 bytes");
}

TEST(Npy, ElementsOfEachTypeHaveTheirSize) {
  const std::pair<const char*, size_t> types[] = {{"<f8", 8}, {"<f4", 4}, {"<f2", 2}, {"<i8", 8},
                                                  {"<i4", 4}, {"|i1", 1}, {"|u1", 1}, {"|b1", 1}};
  for (const auto& [type, size] : types) {
    const std::string head = header(of_shape("(3, 1)", type));
    const NpyHeader read = parse(head);
    for (const size_t more : {0, 1}) {
      std::vector<std::byte> bytes(head.size() + 3 * size + more);
      const FileBytes file = FileBytes::hold(bytes, "a.npy");
      if (more == 0) {
        EXPECT_EQ(read_npy(file, 0, bytes.size(), read).shape(), (Shape{3, 1})) << type;
        EXPECT_EQ(read_npy(file, 0, bytes.size(), read).dtype(), read.dtype) << type;
      } else {
        EXPECT_EQ(error_of([&] { read_npy(file, 0, bytes.size(), read); }),
                  str("a.npy: expected 3 elements of ", name_of(read.dtype), " for shape [3, 1], got ", 3 * size + 1,
                      " bytes"));
      }
    }
    EXPECT_EQ(error_of([&] { read_npy(FileBytes::hold({}, "a.npy"), 0, 5, read); }),
              str("a.npy: expected 3 elements of ", name_of(read.dtype), " for shape [3, 1], got 0 bytes"));
  }
  EXPECT_ERROR(error_of([] { array(of_shape("(2,)", ">f4"), 2); }), "a.npy", ">f4");
}

}  // namespace
}  // namespace vitrail::weights
