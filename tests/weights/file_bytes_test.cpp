// SPDX-License-Identifier: Apache-2.0
#include "vitrail/weights/file_bytes.h"

#include <gtest/gtest.h>

#include <cstring>
#include <fstream>
#include <limits>

#include "tests/support/errors.h"
#include "tests/support/messages.h"
#include "tests/support/paths.h"

namespace vitrail::weights {
namespace {

TEST(FileBytes, ATensorLiesInsideTheFile) {
  const FileBytes file = FileBytes::hold(std::vector<std::byte>(16), "w.bin");
  EXPECT_EQ(file.tensor(0, DType::f32, {2, 2}).numel(), 4);
  EXPECT_EQ(file.tensor(12, DType::f32, {1}).numel(), 1);
  EXPECT_EQ(file.tensor(16, DType::f32, {0}).numel(), 0);
  for (const auto& [offset, count] : {std::pair<uint64_t, int64_t>{0, 5},
                                      {12, 2},
                                      {13, 1},
                                      {16, 1},
                                      {17, 0},
                                      {8, int64_t{1} << 40},
                                      {std::numeric_limits<uint64_t>::max(), 1}}) {
    const uint64_t begin = offset;
    const Shape shape{count};
    EXPECT_TRUE(testing::contains(testing::error_of([&] { file.tensor(begin, DType::f32, shape); }),
                                  str("w.bin: expected a tensor of shape ", shape, " inside the file's 16 bytes")))
        << offset << ", " << count;
  }
}

// A C++ bool of another byte than 0 and 1 would be neither true nor false.
TEST(FileBytes, EachByteOfABooleanThatIsNotZeroIsTrue) {
  const FileBytes file = FileBytes::hold({std::byte{0}, std::byte{1}, std::byte{2}, std::byte{255}}, "w.bin");
  const Tensor values = file.tensor(0, DType::boolean, {4});
  const auto* const bytes = static_cast<const uint8_t*>(static_cast<const void*>(values.raw()));
  for (size_t i = 0; i < 4; ++i) EXPECT_EQ(bytes[i], i == 0 ? 0 : 1);
}

std::vector<std::byte> rising(size_t count) {
  std::vector<std::byte> bytes(count);
  for (size_t i = 0; i < count; ++i) bytes[i] = static_cast<std::byte>(i + 1);
  return bytes;
}

TEST(FileBytes, ATensorThatDoesNotFitIsAnErrorThatTellsItsPlace) {
  const FileBytes file = FileBytes::hold(std::vector<std::byte>(16), "w.bin");
  EXPECT_ERROR(testing::error_of([&] { file.tensor(9, DType::f64, {1}); }), "w.bin", "one that begins at byte 9");
  EXPECT_ERROR(testing::error_of([&] { file.tensor(17, DType::u8, {0, 3}); }), "w.bin", "one that begins at byte 17");
  EXPECT_ERROR(testing::error_of([&] {
                 file.tensor(0, DType::u8, {int64_t{1} << 40, int64_t{1} << 40});
               }),
               "w.bin", "a larger shape");
  EXPECT_EQ(file.tensor(8, DType::f64, {1}).numel(), 1);
  EXPECT_EQ(file.tensor(1, DType::u8, {3, 5}).numel(), 15);
}

// Bytes 1, 2, 3, …: two of them are 0x0201 from the first on.
TEST(FileBytes, AlignedElementsAreAViewAndOthersACopy) {
  const FileBytes file = FileBytes::hold(rising(64), "w.bin");
  ASSERT_EQ(reinterpret_cast<uintptr_t>(file.data.data()) % 8, 0u);
  for (const DType dtype :
       {DType::i32, DType::f32, DType::i64, DType::f64, DType::bf16, DType::f16, DType::i8, DType::u8}) {
    for (const uint64_t offset : {0, 1, 2, 4, 8, 12}) {
      const Tensor tensor = file.tensor(offset, dtype, {1, 2});
      EXPECT_EQ(tensor.dtype(), dtype);
      EXPECT_EQ(tensor.shape(), (Shape{1, 2}));
      EXPECT_EQ(tensor.strides(), (Shape{2, 1}));
      EXPECT_EQ(tensor.raw() == file.data.data() + offset, offset % size_of(dtype) == 0) << name_of(dtype) << offset;
      EXPECT_EQ(std::memcmp(tensor.raw(), file.data.data() + offset, 2 * size_of(dtype)), 0)
          << name_of(dtype) << offset;
    }
  }
  const Tensor empty = file.tensor(3, DType::i32, {0, 2});
  EXPECT_EQ(empty.shape(), (Shape{0, 2}));
  EXPECT_EQ(empty.dtype(), DType::i32);
}

TEST(FileBytes, BooleansAreCopiedFromTheirPlace) {
  std::vector<std::byte> bytes(6);
  bytes[2] = std::byte{9};
  bytes[4] = std::byte{1};
  const FileBytes file = FileBytes::hold(bytes, "w.bin");
  const Tensor values = file.tensor(1, DType::boolean, {2, 2});
  EXPECT_EQ(values.shape(), (Shape{2, 2}));
  EXPECT_NE(values.raw(), file.data.data() + 1);
  for (int64_t i = 0; i < 4; ++i) EXPECT_EQ(values.data<bool>()[i], i % 2 == 1) << i;
}

TEST(FileBytes, ATensorKeepsTheBytesAlive) {
  Tensor held, mapped;
  const auto path = testing::scratch_folder() / "file";
  std::ofstream(path, std::ios::binary) << "\x01\x02\x03\x04\x05\x06\x07\x08";
  {
    const FileBytes file = FileBytes::hold(rising(8), "w.bin"), of_disk = FileBytes::map(path);
    EXPECT_EQ(file.where, "w.bin");
    EXPECT_FALSE(file.mapped);
    EXPECT_EQ(of_disk.where, path.string());
    EXPECT_TRUE(of_disk.mapped);
    EXPECT_EQ(of_disk.data.size(), 8u);
    held = file.tensor(4, DType::i32, {1});
    mapped = of_disk.tensor(4, DType::i32, {1});
    EXPECT_EQ(mapped.raw(), of_disk.data.data() + 4);
  }
  EXPECT_EQ(held.data<int32_t>()[0], 0x08070605);
  EXPECT_EQ(mapped.data<int32_t>()[0], 0x08070605);
  mapped.storage()->release();
  const auto absent = path.parent_path() / "absent";
  EXPECT_EQ(testing::error_of([&] { FileBytes::map(absent); }),
            absent.string() + ": cannot be opened: No such file or directory");
}

}  // namespace
}  // namespace vitrail::weights
