// SPDX-License-Identifier: Apache-2.0
#include "vitrail/base/npy.h"

#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <fstream>
#include <sstream>

#include "tests/support/paths.h"
#include "vitrail/base/error.h"

// numpy wrote the fixtures: tools/golden/data_npy.py.
namespace vitrail {
namespace {

using testing::fixture;
using testing::scratch_folder;

std::string bytes_of(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  std::ostringstream bytes;
  bytes << file.rdbuf();
  return bytes.str();
}

std::filesystem::path file_with(const std::string& bytes) {
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
  EXPECT_EQ(bytes_of(path), bytes_of(fixture("data/float32_2x3x4.npy")));
}

TEST(Npy, ArraysGiveTheFileThatNumpyWrites) {
  const auto folder = scratch_folder();
  write_npy(folder / "f.npy", std::array<int64_t, 3>{2, 3, 4}, eighths().data());
  EXPECT_EQ(bytes_of(folder / "f.npy"), bytes_of(fixture("data/float32_2x3x4.npy")));
  const std::array<int64_t, 6> integers{-1, 2, int64_t{1} << 62, INT64_MIN, 0, 7};
  write_npy(folder / "i.npy", std::array<int64_t, 2>{3, 2}, integers.data());
  EXPECT_EQ(bytes_of(folder / "i.npy"), bytes_of(fixture("data/int64_3x2.npy")));
  const float scalar = 2.5f;
  write_npy(folder / "s.npy", {}, &scalar);
  EXPECT_EQ(bytes_of(folder / "s.npy"), bytes_of(fixture("data/scalar.npy")));
}

TEST(Npy, ZeroRowsGiveAnEmptyArray) {
  const auto path = scratch_folder() / "a.npy";
  NpyWriter(path, DType::f32, std::array<int64_t, 1>{7}).finish();
  EXPECT_EQ(bytes_of(path), bytes_of(fixture("data/empty_0x7.npy")));
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
  const std::string good = bytes_of(fixture("data/float32_2x3x4.npy"));
  for (size_t length = 0; length < good.size(); ++length) {
    EXPECT_THROW(read_npy(file_with(good.substr(0, length))), Error) << "cut to " << length << " bytes";
  }
  EXPECT_THROW(read_npy(file_with(good + "x")), Error);
  std::string magic = good, huge = good;
  magic[1] = 'n';
  EXPECT_THROW(read_npy(file_with(magic)), Error);
  huge.replace(huge.find("(2, 3, 4), }"), 39, "(3037000500, 3037000500, 3037000500), }");
  EXPECT_THROW(read_npy(file_with(huge)), Error) << "a count of elements that overflows";
  for (const char version : {'\x00', '\x04', '\xff'}) {
    std::string other = good;
    other[6] = version;
    EXPECT_THROW(read_npy(file_with(other)), Error) << "version " << int{version};
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
    EXPECT_EQ(read_npy(file_with(bytes)).f32, values) << int{version};
  }
}

TEST(Npy, HeadersOfOtherProgramsAreRead) {
  const auto file = [](const std::string& header, size_t bytes) {
    std::string text("\x93NUMPY\x01\x00", 8);
    text += {static_cast<char>(header.size()), '\0'};
    return file_with(text + header + std::string(bytes, '\0'));
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

}  // namespace
}  // namespace vitrail
