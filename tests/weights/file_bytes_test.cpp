// SPDX-License-Identifier: Apache-2.0
#include "vitrail/weights/file_bytes.h"

#include <gtest/gtest.h>

#include <limits>

#include "tests/support/messages.h"

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

}  // namespace
}  // namespace vitrail::weights
