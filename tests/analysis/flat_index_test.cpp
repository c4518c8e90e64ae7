// SPDX-License-Identifier: Apache-2.0
#include "vitrail/analysis/flat_index.h"

#include <gtest/gtest.h>

#include <cstring>
#include <fstream>
#include <limits>

#include "tests/support/errors.h"
#include "tests/support/messages.h"
#include "tests/support/paths.h"
#include "vitrail/base/error.h"

namespace vitrail::analysis {
namespace {

namespace fs = std::filesystem;

const std::vector<float> kRows{0.25f, -1, 0.5f, 1, 0, -0.5f, 0.314f, -0.299f, 0.099f};  // [3, 3]

fs::path written(DType dtype) {
  const fs::path path = testing::scratch_folder() / "vectors.index";
  ColumnRanges ranges(3);
  ranges.include(kRows.data(), 3);
  FlatIndexWriter writer(path, dtype, 3, dtype == DType::f32 ? std::vector<float>() : ranges.trained());
  writer.add(kRows.data(), 1);
  writer.add(kRows.data() + 3, 2);
  writer.finish().commit();
  return path;
}

std::string content_of(const fs::path& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

std::vector<float> values_of(const FlatIndex& index) {
  std::vector<float> values(static_cast<size_t>(index.count() * index.width()));
  index.read(0, index.count(), values.data());
  return values;
}

std::string hex(const std::string& bytes) {
  std::string text;
  for (const char c : bytes) {
    char two[3];
    std::snprintf(two, sizeof two, "%02x", static_cast<unsigned char>(c));
    text += two;
  }
  return text;
}

// What faiss.write_index writes for these rows in faiss-cpu 1.15.1 (tools/golden/faiss_indices.py).
TEST(FlatIndex, HasTheBytesOfFaiss) {
  EXPECT_EQ(hex(content_of(written(DType::f32))),
            "497846490300000003000000000000000000100000000000000010000000000001000000000900000000000000000080"
            "3e000080bf0000003f0000803f00000000000000bf9cc4a03e871699be83c0ca3d");
  EXPECT_EQ(hex(content_of(written(DType::i8))),
            "497853510300000003000000000000000000100000000000000010000000000001000000000000000000000000000000"
            "000300000000000000030000000000000006000000000000000000803e000080bf000000bf0000403f0000803f000080"
            "3f09000000000000000000ffffff0015b298");
}

TEST(FlatIndex, GivesTheRowsBack) {
  const FlatIndex index(written(DType::f32));
  EXPECT_EQ(index.dtype(), DType::f32);
  EXPECT_EQ(index.count(), 3);
  EXPECT_EQ(index.width(), 3);
  EXPECT_EQ(values_of(index), kRows);
  std::vector<float> second(3);
  index.read(1, 1, second.data());
  EXPECT_EQ(second, std::vector<float>(kRows.begin() + 3, kRows.begin() + 6));
}

TEST(FlatIndex, EightBitsAreWithinAStepOfTheColumn) {
  const FlatIndex index(written(DType::i8));
  EXPECT_EQ(index.dtype(), DType::i8);
  const float ranges[] = {0.75f, 1, 1};
  const std::vector<float> values = values_of(index);
  for (size_t i = 0; i < kRows.size(); ++i) EXPECT_NEAR(values[i], kRows[i], ranges[i % 3] / 255) << i;
}

TEST(FlatIndex, RefusesEveryTruncation) {
  for (const DType dtype : {DType::f32, DType::i8}) {
    const fs::path path = written(dtype);
    const std::string bytes = content_of(path);
    for (size_t size = 0; size < bytes.size(); ++size) {
      std::ofstream(path, std::ios::binary) << bytes.substr(0, size);
      EXPECT_THROW(FlatIndex{path}, Error) << size;
    }
    std::ofstream(path, std::ios::binary) << bytes << 'x';
    EXPECT_THROW(FlatIndex{path}, Error);
  }
}

TEST(FlatIndex, RefusesOtherMetricsFormatsAndSizes) {
  const fs::path path = written(DType::f32);
  const std::string bytes = content_of(path);
  const auto with = [&](size_t at, const std::string& change) {
    std::string changed = bytes;
    changed.replace(at, change.size(), change);
    std::ofstream(path, std::ios::binary) << changed;
    return testing::error_of([&] { FlatIndex{path}; });
  };
  EXPECT_TRUE(testing::contains(with(0, "IxF2"), "FAISS's IxFI or IxSQ"));
  EXPECT_TRUE(testing::contains(with(33, "\x01"), "metric of inner products"));
  EXPECT_TRUE(testing::contains(with(4, std::string(4, '\xff')), "a width of 1 to"));
  EXPECT_TRUE(testing::contains(with(8, std::string(8, '\x7f')), "number of vectors"));
}

// Values outside the range that was found get the code of its end; a column without a range has one code.
TEST(FlatIndex, ClampsToTheRangeOfTheColumn) {
  const fs::path path = testing::scratch_folder() / "vectors.index";
  FlatIndexWriter writer(path, DType::i8, 2, {0, 5, 1, 0});  // 0 to 1, and 5 only
  const std::vector<float> rows{-3, 5, 0, 5, 0.5f, 7, 1, -7, 9, 5};
  writer.add(rows.data(), 5);
  writer.finish().commit();
  const FlatIndex index(path);
  ASSERT_EQ(index.count(), 5);
  const std::vector<float> got = values_of(index);
  const float half = 0.5f / 255;
  const std::vector<float> want{half, 5, half, 5, 127 / 255.0f + half, 5, 1 + half, 5, 1 + half, 5};
  for (size_t i = 0; i < want.size(); ++i) EXPECT_NEAR(got[i], want[i], 1e-6) << i;
  std::vector<float> last(4);
  index.read(3, 2, last.data());
  EXPECT_EQ(last, std::vector<float>(got.begin() + 6, got.end()));
}

TEST(FlatIndex, WithoutVectorsIsValid) {
  for (const DType dtype : {DType::f32, DType::i8}) {
    const fs::path path = testing::scratch_folder() / "vectors.index";
    FlatIndexWriter(path, dtype, 4, dtype == DType::f32 ? std::vector<float>() : std::vector<float>(8))
        .finish()
        .commit();
    const FlatIndex index(path);
    EXPECT_EQ(index.count(), 0);
    EXPECT_EQ(index.width(), 4);
  }
}

TEST(FlatIndex, WidthsOutOfRangeAreErrors) {
  const fs::path path = testing::scratch_folder() / "vectors.index";
  for (const int64_t width : {int64_t{0}, int64_t{-1}, (int64_t{1} << 20) + 1})
    EXPECT_THROW(FlatIndexWriter(path, DType::f32, width), Error) << width;
  EXPECT_NO_THROW(FlatIndexWriter(path, DType::f32, int64_t{1} << 20));
  EXPECT_FALSE(fs::exists(path));
}

TEST(ColumnRanges, AreTheMinimaAndDifferencesOfAllRows) {
  ColumnRanges ranges(2);
  const std::vector<float> rows{1, -5, 3, -7, 2, -6};
  ranges.include(rows.data(), 1);
  ranges.include(rows.data() + 2, 2);
  ranges.include(nullptr, 0);
  EXPECT_EQ(ranges.trained(), (std::vector<float>{1, -7, 2, 2}));
}

// What an index says of itself is checked, field by field, in the order of the file.
TEST(FlatIndex, ErrorsNameTheFieldTheExpectedAndTheGivenValue) {
  const auto message_of = [](DType dtype, size_t at, const std::string& change) {
    const fs::path path = written(dtype);
    std::string bytes = content_of(path);
    bytes.replace(at, change.size(), change);
    std::ofstream(path, std::ios::binary) << bytes;
    const std::string message = testing::error_of([&] { FlatIndex{path}; }), prefix = path.string() + ": expected ";
    EXPECT_TRUE(message.starts_with(prefix)) << message;
    return message.substr(prefix.size());
  };
  const std::string one("\1\0\0\0\0\0\0\0", 8), four("\4\0\0\0\0\0\0\0", 8);
  for (const DType dtype : {DType::f32, DType::i8}) {
    EXPECT_EQ(message_of(dtype, 0, "IxHN"), "an index of `vitrail index` (FAISS's IxFI or IxSQ), got another format");
    EXPECT_EQ(message_of(dtype, 4, std::string(4, '\0')), "a width of 1 to 1048576, got 0");
    EXPECT_EQ(message_of(dtype, 4, std::string("\1\0\x10\0", 4)), "a width of 1 to 1048576, got 1048577");
    EXPECT_EQ(message_of(dtype, 8, std::string(8, '\xff')), "a number of vectors that fits 64 bits, got -1");
    EXPECT_EQ(message_of(dtype, 33, "\1"), "the metric of inner products, 0, got 1");
  }
  EXPECT_EQ(message_of(DType::f32, 37, four), "a number of elements of 9, got 4");
  EXPECT_EQ(message_of(DType::f32, 8, four), "a number of elements of 12, got 9");
  EXPECT_EQ(message_of(DType::i8, 37, "\1"), "the quantizer QT_8bit, 0, got 1");
  EXPECT_EQ(message_of(DType::i8, 49, four), "a width of 3, got 4");
  EXPECT_EQ(message_of(DType::i8, 57, one), "a width of 3, got 1");
  EXPECT_EQ(message_of(DType::i8, 65, four), "a number of elements of 6, got 4");
  EXPECT_EQ(message_of(DType::i8, 97, four), "a number of elements of 9, got 4");
}

// Fields that say how the index was made are read over.
TEST(FlatIndex, TakesOtherValuesOfFieldsThatItDoesNotUse) {
  const fs::path path = written(DType::i8);
  const std::string bytes = content_of(path);
  for (const size_t at : {16, 24, 31, 32, 41, 44, 45, 48}) {
    std::string changed = bytes;
    changed[at] = '\x7f';
    std::ofstream(path, std::ios::binary) << changed;
    EXPECT_EQ(FlatIndex(path).count(), 3) << at;
  }
}

TEST(FlatIndex, TellsHowManyBytesAreMissingOrTooMany) {
  const fs::path path = written(DType::f32);
  const std::string bytes = content_of(path);
  std::ofstream(path, std::ios::binary) << bytes.substr(0, bytes.size() - 5);
  EXPECT_ERROR(testing::error_of([&] { FlatIndex{path}; }), path.string(), "31; the file is truncated");
  std::ofstream(path, std::ios::binary) << bytes << "abc";
  EXPECT_ERROR(testing::error_of([&] { FlatIndex{path}; }), path.string(), "3 more bytes");
}

// The largest number of vectors whose bytes 64 bits count, which the file does not have.
TEST(FlatIndex, ANumberOfVectorsIsLimitedByItsBytes) {
  const auto message_of = [](int64_t count) {
    const fs::path path = written(DType::f32);
    std::string bytes = content_of(path);
    std::memcpy(bytes.data() + 8, &count, sizeof count);
    std::ofstream(path, std::ios::binary) << bytes;
    return testing::error_of([&] { FlatIndex{path}; });
  };
  const int64_t max = std::numeric_limits<int64_t>::max() / 12;
  EXPECT_TRUE(testing::contains(message_of(max), str("a number of elements of ", 3 * max, ", got 9")));
  EXPECT_TRUE(testing::contains(message_of(max + 1), str("a number of vectors that fits 64 bits, got ", max + 1)));
}

// A code stands for the middle of its part of the range; each row can be read by itself.
TEST(FlatIndex, ACodeStandsForTheMiddleOfItsPart) {
  const fs::path path = testing::scratch_folder() / "vectors.index";
  FlatIndexWriter writer(path, DType::i8, 2, {-10, 100, 255, 510});  // parts of 1 and of 2
  const std::vector<float> rows{-10, 100, -9.01F, 101.99F, 3.5F, 102.01F, 245, 610, 244.99F, 607.9F};
  writer.add(rows.data(), 3);
  writer.add(rows.data() + 6, 2);
  writer.finish().commit();
  const std::vector<float> want{-9.5F, 101, -9.5F, 101, 3.5F, 103, 245.5F, 611, 244.5F, 607};
  const FlatIndex index(path);
  EXPECT_EQ(values_of(index), want);
  for (int64_t row = 0; row < 5; ++row) {
    std::vector<float> values(4, -1);
    index.read(row, 1, values.data());
    EXPECT_EQ(values, (std::vector<float>{want[2 * row], want[2 * row + 1], -1, -1})) << row;
  }
  EXPECT_ERROR(testing::error_of([&] { FlatIndexWriter(path, DType::i8, 0); }), path.string(), "0");
}

TEST(FlatIndex, TheLargestWidthIsRead) {
  const fs::path path = testing::scratch_folder() / "vectors.index";
  FlatIndexWriter(path, DType::f32, int64_t{1} << 20).finish().commit();
  EXPECT_EQ(FlatIndex(path).width(), int64_t{1} << 20);
}

TEST(ColumnRanges, WithoutRowsAreEmpty) {
  const std::vector<float> trained = ColumnRanges(2).trained();
  ASSERT_EQ(trained.size(), 4U);
  EXPECT_LT(trained[2], 0) << "no value is in the range";
}

}  // namespace
}  // namespace vitrail::analysis
