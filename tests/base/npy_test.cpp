// SPDX-License-Identifier: Apache-2.0
#include "vitrail/base/npy.h"

#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <cstring>
#include <fstream>
#include <span>

#include "tests/base/contents.h"
#include "tests/support/errors.h"
#include "tests/support/messages.h"
#include "tests/support/paths.h"
#include "vitrail/base/error.h"
#include "vitrail/base/npy_header_internal.h"

// numpy wrote the fixtures: tools/golden/data_npy.py.
namespace vitrail {
namespace {

using testing::content_of;
using testing::fixture;
using testing::scratch_folder;

std::filesystem::path npy_file_with(const std::string& bytes) {
  const auto path = scratch_folder() / "made.npy";
  std::ofstream(path, std::ios::binary) << bytes;
  return path;
}

std::vector<float> eighths() {
  std::vector<float> values(24);
  for (int i = 0; i < 24; ++i) values[i] = static_cast<float>(i) / 8;
  return values;
}

TEST(Npy, RowsOfUnknownCountGiveTheFileThatNumpyWrites) {
  const auto path = scratch_folder() / "a.npy";
  const std::vector<float> values = eighths();
  NpyWriter writer(path, DType::f32, std::array<int64_t, 2>{3, 4});
  writer.write_rows(values.data(), 1);
  EXPECT_FALSE(std::filesystem::exists(path)) << "an unfinished file must not appear at its path";
  writer.write_rows(values.data() + 12, 1);
  writer.finish();
  EXPECT_EQ(content_of(path), content_of(fixture("data/float32_2x3x4.npy")));
}

TEST(Npy, ArraysGiveTheFileThatNumpyWrites) {
  const auto folder = scratch_folder();
  write_npy(folder / "f.npy", std::array<int64_t, 3>{2, 3, 4}, eighths().data());
  EXPECT_EQ(content_of(folder / "f.npy"), content_of(fixture("data/float32_2x3x4.npy")));
  const std::array<int64_t, 6> integers{-1, 2, int64_t{1} << 62, INT64_MIN, 0, 7};
  write_npy(folder / "i.npy", std::array<int64_t, 2>{3, 2}, integers.data());
  EXPECT_EQ(content_of(folder / "i.npy"), content_of(fixture("data/int64_3x2.npy")));
  const float scalar = 2.5f;
  write_npy(folder / "s.npy", {}, &scalar);
  EXPECT_EQ(content_of(folder / "s.npy"), content_of(fixture("data/scalar.npy")));
}

TEST(Npy, ZeroRowsGiveAnEmptyArray) {
  const auto path = scratch_folder() / "a.npy";
  NpyWriter(path, DType::f32, std::array<int64_t, 1>{7}).finish();
  EXPECT_EQ(content_of(path), content_of(fixture("data/empty_0x7.npy")));
}

TEST(Npy, FewerRowsThanAnnouncedThrowAndLeaveNoFile) {
  const auto path = scratch_folder() / "a.npy";
  {
    NpyWriter writer(path, DType::i64, {}, 2);
    const int64_t one = 1;
    writer.write_rows(&one, 1);
    EXPECT_THROW(writer.finish(), Error);
    const float wrong = 1;
    EXPECT_THROW(writer.write_rows(&wrong, 1), Error) << "rows of another type";
  }
  EXPECT_TRUE(std::filesystem::is_empty(path.parent_path()));
}

TEST(Npy, ReadsFilesThatNumpyWrote) {
  const NpyArray f = read_npy(fixture("data/float32_2x3x4.npy"));
  EXPECT_EQ(f.dtype, DType::f32);
  EXPECT_EQ(f.shape, (std::vector<int64_t>{2, 3, 4}));
  EXPECT_EQ(f.f32, eighths());

  const NpyArray d = read_npy(fixture("data/float64_5.npy"));
  EXPECT_EQ(d.shape, std::vector<int64_t>{5});
  for (int i = 0; i < 5; ++i) EXPECT_EQ(d.f64[i], std::sqrt(static_cast<double>(i)));

  const NpyArray i = read_npy(fixture("data/int64_3x2.npy"));
  EXPECT_EQ(i.i64, (std::vector<int64_t>{-1, 2, int64_t{1} << 62, INT64_MIN, 0, 7}));

  EXPECT_EQ(read_npy(fixture("data/version2.npy")).f32, (std::vector<float>{0, 1, 2}));
  EXPECT_TRUE(read_npy(fixture("data/scalar.npy")).shape.empty());
  EXPECT_EQ(read_npy(fixture("data/scalar.npy")).f32, std::vector<float>{2.5f});
  EXPECT_TRUE(read_npy(fixture("data/empty_0x7.npy")).f32.empty());
}

TEST(Npy, OtherLayoutsAndTypesAreErrors) {
  EXPECT_THROW(read_npy(fixture("data/fortran.npy")), Error);
  EXPECT_THROW(read_npy(fixture("data/int32.npy")), Error);
}

TEST(Npy, DamagedFilesAreErrors) {
  const std::string good = content_of(fixture("data/float32_2x3x4.npy"));
  for (size_t length = 0; length < good.size(); ++length) {
    EXPECT_THROW(read_npy(npy_file_with(good.substr(0, length))), Error) << "cut to " << length << " bytes";
  }
  EXPECT_THROW(read_npy(npy_file_with(good + "x")), Error);
  std::string magic = good, huge = good;
  magic[1] = 'n';
  EXPECT_THROW(read_npy(npy_file_with(magic)), Error);
  huge.replace(huge.find("(2, 3, 4), }"), 39, "(3037000500, 3037000500, 3037000500), }");
  EXPECT_THROW(read_npy(npy_file_with(huge)), Error) << "a count of elements that overflows";
  for (const char version : {'\x00', '\x04', '\xff'}) {
    std::string other = good;
    other[6] = version;
    EXPECT_THROW(read_npy(npy_file_with(other)), Error) << "version " << int{version};
  }
}

TEST(Npy, HalfPrecisionRowsAreRoundedToNearestEven) {
  const auto path = scratch_folder() / "h.npy";
  const std::vector<float> values{1, 1 + 0x1p-11f, 1 + 3 * 0x1p-11f, -0.1f, 65519, 1e6f};
  NpyWriter writer(path, DType::f16, std::array<int64_t, 1>{2}, 3);
  writer.write_rows(values.data(), 1);
  writer.write_rows(values.data() + 2, 2);
  writer.finish();
  const NpyArray read = read_npy(path);
  EXPECT_EQ(read.dtype, DType::f16);
  EXPECT_EQ(read.shape, (std::vector<int64_t>{3, 2}));
  EXPECT_EQ(read.f32, (std::vector<float>{1, 1, 1 + 0x1p-9f, -0.0999755859375f, 65504, INFINITY}));
  EXPECT_EQ(std::filesystem::file_size(path) % 64, 12u) << "two bytes for each value";
}

TEST(Npy, MoreAxesThanAHeaderHoldsAreAnError) {
  const auto path = scratch_folder() / "a.npy";
  const float value = 1;
  EXPECT_THROW(write_npy(path, std::vector<int64_t>(30000, 1), &value), Error);
  write_npy(path, std::vector<int64_t>(1000, 1), &value);
  EXPECT_EQ(read_npy(path).shape, std::vector<int64_t>(1000, 1));
}

TEST(Npy, OtherTypesAndRowsThanAnnouncedAreErrors) {
  const auto folder = scratch_folder();
  for (const DType dtype : {DType::f64, DType::bf16, DType::i32, DType::u8})
    EXPECT_THROW(NpyWriter(folder / "a.npy", dtype), Error);
  const std::array<float, 2> values{1, 2};
  {
    NpyWriter writer(folder / "a.npy", DType::f32, std::array<int64_t, 1>{1}, 1);
    const int64_t integer = 1;
    EXPECT_THROW(writer.write_rows(&integer, 1), Error);
    writer.write_rows(values.data(), 2);
    EXPECT_THROW(writer.finish(), Error) << "a row too many";
  }
  EXPECT_THROW(write_npy(folder / "b.npy", std::array<int64_t, 2>{-1, 0}, values.data()), Error);
  EXPECT_TRUE(std::filesystem::is_empty(folder));
}

TEST(NpyRows, AreReadAsFloatFromAnyRow) {
  const NpyRows rows(fixture("data/float32_2x3x4.npy"));
  EXPECT_EQ(rows.shape(), (std::vector<int64_t>{2, 3, 4}));
  std::vector<float> second(12), both(24);
  rows.read(1, 1, second.data());
  rows.read(0, 2, both.data());
  EXPECT_EQ(both, eighths());
  EXPECT_EQ(second, std::vector<float>(both.begin() + 12, both.end()));
  rows.read(2, 0, nullptr);

  const NpyRows doubles(fixture("data/float64_5.npy"));
  EXPECT_EQ(doubles.dtype(), DType::f64);
  std::vector<float> roots(3);
  doubles.read(2, 3, roots.data());
  for (int i = 0; i < 3; ++i) EXPECT_EQ(roots[i], static_cast<float>(std::sqrt(2.0 + i)));

  const auto path = scratch_folder() / "h.npy";
  NpyWriter writer(path, DType::f16, std::array<int64_t, 1>{3});
  writer.write_rows(eighths().data(), 2);
  writer.finish();
  std::vector<float> last(3);
  NpyRows(path).read(1, 1, last.data());
  EXPECT_EQ(last, (std::vector<float>{0.375f, 0.5f, 0.625f}));
}

TEST(NpyRows, OfScalarsAndIntegersAreErrors) {
  EXPECT_THROW(NpyRows(fixture("data/scalar.npy")), Error);
  EXPECT_THROW(NpyRows(fixture("data/int64_3x2.npy")), Error);
  EXPECT_THROW(NpyRows(scratch_folder() / "absent.npy"), Error);
}

// Its length has two bytes in version 1 and four in the later ones.
TEST(Npy, LaterVersionsHaveLongerHeaders) {
  std::string header = "{'descr': '<f4', 'fortran_order': False, 'shape': (2,)}";
  header.resize(0x010203, ' ');
  for (const char version : {'\x02', '\x03'}) {
    std::string bytes = "\x93NUMPY";
    bytes += version;
    bytes += std::string("\0\x03\x02\x01\0", 5) + header;
    const std::vector<float> values{1.5F, -2};
    bytes.append(reinterpret_cast<const char*>(values.data()), 8);
    EXPECT_EQ(read_npy(npy_file_with(bytes)).f32, values) << int{version};
  }
}

TEST(Npy, HeadersOfOtherProgramsAreRead) {
  const auto file = [](const std::string& header, size_t bytes) {
    std::string text("\x93NUMPY\x01\x00", 8);
    text += {static_cast<char>(header.size()), '\0'};
    return npy_file_with(text + header + std::string(bytes, '\0'));
  };
  EXPECT_EQ(read_npy(file("{'shape':(2,3),'fortran_order':False,'descr':'<f4'}", 24)).shape,
            (std::vector<int64_t>{2, 3}));
  EXPECT_EQ(read_npy(file("{'descr': '<f8', 'fortran_order': False, 'shape': (12L,), }", 96)).shape,
            std::vector<int64_t>{12});
  EXPECT_THROW(read_npy(file("{'descr': '<f4', 'fortran_order': False, 'shape': [2]}", 8)), Error);
  EXPECT_THROW(read_npy(file("{'descr': '<f4', 'fortran_order': False, 'shape': (-2)}", 8)), Error);
  EXPECT_THROW(read_npy(file("{'descr': '>f4', 'fortran_order': False, 'shape': (2,)}", 8)), Error);
  EXPECT_THROW(read_npy(file("{'descr': '<f4', 'shape': (2,)}", 8)), Error);
  EXPECT_THROW(read_npy(file("{'descr': '<f4', 'fortran_order': False, 'shape': (99999999999999999999,)}", 8)), Error);
}

// A file of version 1 with this header.
std::string npy_bytes(const std::string& header, size_t element_bytes, char version = 1) {
  std::string text("\x93NUMPY", 6);
  text += {version, '\0', static_cast<char>(header.size() & 255), static_cast<char>(header.size() >> 8)};
  if (version > 1) text += std::string(2, '\0');
  return text + header + std::string(element_bytes, '\0');
}

std::string parse_error(const std::string& bytes) {
  return testing::error_of([&] { parse_npy(std::as_bytes(std::span(bytes)), "a.npy"); });
}

TEST(Npy, TheErrorSaysWhatIsWrong) {
  const auto header = [](const std::string& descr, const std::string& order, const std::string& shape) {
    return "{'descr': " + descr + ", 'fortran_order': " + order + ", 'shape': " + shape + ", }";
  };
  const std::string good = header("'<f4'", "False", "(2, 3)");
  const std::pair<std::string, std::string> cases[] = {
      {"", "an .npy file, got another format"},
      {"\x93NUMPX\x01", "an .npy file, got another format"},
      {"\x93NUMPY\x01", "an .npy header, got the end of the file"},
      {npy_bytes("", 0).substr(0, 9), "an .npy header, got the end of the file"},
      {npy_bytes(good, 24, 2).substr(0, 11), "an .npy header, got the end of the file"},
      {std::string("\x93NUMPY\0\5xx", 10), ".npy version 1.0 to 3.0, got 0.5"},
      {std::string("\x93NUMPY\4\7xx", 10), ".npy version 1.0 to 3.0, got 4.7"},
      {npy_bytes(good, 0).substr(0, 30), str(good.size(), " bytes of header, got the end of the file")},
      {npy_bytes("{}", 0), "an .npy header with 'descr', got none"},
      {npy_bytes("{'descr': '<f4'}", 0), "an .npy header with 'fortran_order', got none"},
      {npy_bytes("{'descr': '<f4', 'fortran_order': False}", 0), "an .npy header with 'shape', got none"},
      {npy_bytes("{'descr' '<f4'", 0), "an .npy header with 'descr', got none"},
      {npy_bytes("{'descr':   ", 0), "an .npy header with 'descr', got none"},
      {npy_bytes(header("'<f16'", "False", "(2,)"), 0), "'descr' '<f4', '<f2', '<f8' or '<i8', got '<f16', "},
      {npy_bytes(header("'>i8'", "False", "(2,)"), 16), "'descr' '<f4', '<f2', '<f8' or '<i8', got '>i8', '"},
      {npy_bytes(header("'<f4'", "True", "(2,)"), 8), "C order, got Fortran order"},
      {npy_bytes(header("'<f4'", "False", "2"), 8), "'shape' to be a tuple, got 2, }"},
      {npy_bytes(header("'<f4'", "False", "(2"), 8), "'shape' to be a tuple, got (2, }"},
      {npy_bytes(header("'<f4'", "False", "(2, x)"), 8), "sizes in 'shape', got x"},
      {npy_bytes(header("'<f4'", "False", "(-2,)"), 8), "sizes in 'shape', got -"},
      {npy_bytes(header("'<f4'", "False", "(9999999999999999999,)"), 8),
       "a shape whose sizes fit 64 bits, got a larger one"},
      {npy_bytes(header("'<f4'", "False", "(4294967296, 4294967296)"), 8),
       "a shape whose element count fits 64 bits, got 4294967296"},
      {npy_bytes(good, 23), "6 elements of f32, got 23 bytes"},
      {npy_bytes(good, 25), "6 elements of f32, got 25 bytes"},
      {npy_bytes(good, 28), "6 elements of f32, got 28 bytes"},
      {npy_bytes(header("'<f8'", "False", "(2, 3)"), 24), "6 elements of f64, got 24 bytes"},
      {npy_bytes(header("'<f2'", "False", "(5,)"), 12), "5 elements of f16, got 12 bytes"},
      {npy_bytes(header("'<i8'", "False", "()"), 16), "1 elements of i64, got 16 bytes"}};
  for (const auto& [bytes, want] : cases) EXPECT_EQ(parse_error(bytes), "a.npy: expected " + want);
}

TEST(Npy, EachTypeHasItsOwnElements) {
  const auto parsed = [](const char* descr, const std::string& elements) {
    const std::string bytes =
        npy_bytes(str("{'descr': '", descr, "', 'fortran_order': False, 'shape': (2, 1), }"), 0) + elements;
    return parse_npy(std::as_bytes(std::span(bytes)), "a.npy");
  };
  const auto raw = [](auto first, auto second) {
    std::string bytes(2 * sizeof first, '\0');
    std::memcpy(bytes.data(), &first, sizeof first);
    std::memcpy(bytes.data() + sizeof first, &second, sizeof second);
    return bytes;
  };
  const NpyArray f32 = parsed("<f4", raw(1.5F, -2.F)), f64 = parsed("<f8", raw(0.1, 3.)),
                 i64 = parsed("<i8", raw(int64_t{-5}, int64_t{1} << 40)),
                 f16 = parsed("<f2", raw(Float16(0.5F), Float16(-3.F)));
  for (const NpyArray& array : {f32, f64, i64, f16}) EXPECT_EQ(array.shape, (std::vector<int64_t>{2, 1}));
  EXPECT_EQ(f32.dtype, DType::f32);
  EXPECT_EQ(f64.dtype, DType::f64);
  EXPECT_EQ(i64.dtype, DType::i64);
  EXPECT_EQ(f16.dtype, DType::f16);
  EXPECT_EQ(f32.f32, (std::vector<float>{1.5F, -2}));
  EXPECT_EQ(f64.f64, (std::vector<double>{0.1, 3}));
  EXPECT_EQ(i64.i64, (std::vector<int64_t>{-5, int64_t{1} << 40}));
  EXPECT_EQ(f16.f32, (std::vector<float>{0.5F, -3}));
  EXPECT_TRUE(f32.f64.empty() && f32.i64.empty() && f64.f32.empty() && f64.i64.empty() && i64.f32.empty() &&
              i64.f64.empty() && f16.f64.empty() && f16.i64.empty());
}

// numpy reserves 21 characters for the first axis, and ends the header at a multiple of 64.
TEST(Npy, HeadersOfOneRankHaveTheSameLength) {
  const auto header = [](const std::vector<int64_t>& shape) { return npy_header("a.npy", "<f4", shape); };
  const std::string zero = header({0, 5});
  for (const int64_t rows : {int64_t{9}, int64_t{10}, int64_t{123456789}, INT64_MAX})
    EXPECT_EQ(header({rows, 5}).size(), zero.size()) << rows;
  const std::string one = header({7}), want = "{'descr': '<f4', 'fortran_order': False, 'shape': (7,), }";
  EXPECT_EQ(one.substr(0, 10), std::string("\x93NUMPY\x01\0\x76\0", 10));
  EXPECT_EQ(one.size(), 128u);
  EXPECT_EQ(one.substr(10, want.size()), want);
  EXPECT_EQ(one.substr(10 + want.size()), std::string(117 - want.size(), ' ') + "\n");
  EXPECT_EQ(header({}).substr(10, 55), "{'descr': '<f4', 'fortran_order': False, 'shape': (), }");
  EXPECT_EQ(header({2, 3, 4}).substr(10, 63), "{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3, 4), } ");
  for (size_t rank = 0; rank < 40; ++rank) EXPECT_EQ(header(std::vector<int64_t>(rank, 3)).size() % 64, 0u) << rank;
  EXPECT_ERROR(testing::error_of([&] { header(std::vector<int64_t>(30000, 1)); }), "a.npy", "30000");
  EXPECT_STREQ(npy_descr(DType::f32), "<f4");
  EXPECT_STREQ(npy_descr(DType::f16), "<f2");
  EXPECT_STREQ(npy_descr(DType::i64), "<i8");
}

TEST(NpyWriter, WritesItsCompanionsWithIt) {
  const auto folder = scratch_folder();
  AtomicFile companion(folder / "names.txt");
  companion.write("names");
  NpyWriter writer(folder / "a.npy", DType::i64);
  writer.begin(std::array<int64_t, 2>{1, 3});
  const std::array<int64_t, 6> values{1, 2, 3, 4, 5, -6};
  writer.write_rows(values.data(), 2);
  writer.finish({&companion});
  EXPECT_EQ(content_of(folder / "names.txt"), "names");
  const NpyArray array = read_npy(folder / "a.npy");
  EXPECT_EQ(array.shape, (std::vector<int64_t>{2, 1, 3}));
  EXPECT_EQ(array.i64, (std::vector<int64_t>(values.begin(), values.end())));
}

TEST(NpyWriter, TheErrorSaysWhatIsWrong) {
  const auto path = scratch_folder() / "a.npy";
  const std::string where = path.string() + ": expected ";
  EXPECT_EQ(testing::error_of([&] { NpyWriter(path, DType::bf16); }), where + "dtype f32, f16 or i64, got bf16");
  const std::array<int64_t, 1> two{2};
  const std::array<float, 4> values{1, 2, 3, 4};
  const std::array<int64_t, 2> integers{1, 2};
  NpyWriter writer(path, DType::f32, two, 3);
  EXPECT_EQ(testing::error_of([&] { writer.write_rows(integers.data(), 1); }), where + "rows of f32, got i64");
  writer.write_rows(values.data(), 2);
  EXPECT_EQ(testing::error_of([&] { writer.finish(); }), where + "3 rows, got 2");
  NpyWriter halves(path, DType::f16, two);
  EXPECT_EQ(testing::error_of([&] { halves.write_rows(integers.data(), 1); }), where + "rows of f16, got i64");
  NpyWriter of_integers(path, DType::i64, two);
  EXPECT_EQ(testing::error_of([&] { of_integers.write_rows(values.data(), 1); }), where + "rows of i64, got f32");
  const std::array<int64_t, 2> huge{int64_t{1} << 40, int64_t{1} << 40};
  EXPECT_EQ(testing::error_of([&] { NpyWriter(path, DType::f32, huge); }),
            where + "a shape whose element count fits 64 bits, got 1099511627776");
  NpyWriter none(path, DType::f32, two, 0);
  none.finish();
  EXPECT_EQ(read_npy(path).shape, (std::vector<int64_t>{0, 2}));
}

TEST(NpyRows, TheErrorSaysWhatIsWrong) {
  const auto error = [](const std::filesystem::path& path) { return testing::error_of([&] { NpyRows{path}; }); };
  const auto scalar = fixture("data/scalar.npy"), integers = fixture("data/int64_3x2.npy");
  EXPECT_ERROR(error(scalar), scalar.string(), "a scalar");
  EXPECT_ERROR(error(integers), integers.string(), "integers");
  const auto damaged = npy_file_with("text");
  EXPECT_ERROR(error(damaged), damaged.string(), "another format");
  EXPECT_ERROR(testing::error_of([&] { read_npy(damaged); }), damaged.string(), "another format");
}

}  // namespace
}  // namespace vitrail
