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
}

}  // namespace
}  // namespace vitrail
