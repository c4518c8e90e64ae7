// SPDX-License-Identifier: Apache-2.0
#include "vitrail/base/inflate_internal.h"

#include <gtest/gtest.h>

#include "tests/base/contents.h"
#include "tests/support/deflate.h"
#include "tests/support/errors.h"
#include "tests/support/messages.h"
#include "vitrail/base/random.h"

namespace vitrail {
namespace {

using testing::text_of;

std::vector<std::byte> raw_deflated(const std::string& text) {
  return testing::deflated_bytes(text, testing::kRawFormat);
}

std::string random_text(size_t size) {
  RandomStream random(size);
  std::string text(size, ' ');
  for (char& c : text) c = static_cast<char>(random.bits() & 255);
  return text;
}

TEST(Inflate, GivesTheContentOfAnySize) {
  for (const size_t size : {0, 1, 100, 70000}) {
    for (const std::string& text : {std::string(size, 'a'), random_text(size)}) {
      const auto bytes = raw_deflated(text);
      EXPECT_EQ(text_of(inflate_exactly(bytes, size, "entry")), text);
      for (const size_t beginning : {size_t{0}, size / 2, size})
        EXPECT_EQ(text_of(inflate_beginning(bytes, beginning, "entry")), text.substr(0, beginning)) << size;
    }
  }
}

TEST(Inflate, AnotherSizeIsAnError) {
  const auto bytes = raw_deflated("first and second");
  EXPECT_TRUE(testing::contains(testing::error_of([&] { inflate_exactly(bytes, 15, "entry"); }), "more content"));
  EXPECT_TRUE(testing::contains(testing::error_of([&] { inflate_exactly(bytes, 17, "entry"); }), "entry: "));
  EXPECT_TRUE(testing::contains(testing::error_of([&] { inflate_beginning(bytes, 17, "entry"); }), "entry: "));
  EXPECT_FALSE(testing::error_of([&] { inflate_exactly(bytes, 0, "entry"); }).empty());
}

TEST(Inflate, TruncatedDataIsAnError) {
  const std::string text = random_text(300);
  const auto bytes = raw_deflated(text);
  for (size_t length = 0; length < bytes.size(); ++length) {
    const auto cut = std::span(bytes).first(length);
    EXPECT_FALSE(testing::error_of([&] { inflate_exactly(cut, text.size(), "entry"); }).empty()) << length;
  }
  EXPECT_EQ(text_of(inflate_beginning(std::span(bytes).first(200), 100, "entry")), text.substr(0, 100))
      << "the beginning needs only its own data";
}

TEST(Inflate, ASizeAboveTheMaximumRatioIsRefused) {
  const std::vector<std::byte> two(2);
  for (const uint64_t size : {uint64_t{3 * 1032}, uint64_t{1} << 60}) {
    EXPECT_TRUE(testing::contains(testing::error_of([&] { inflate_exactly(two, size, "entry"); }),
                                  "a size that 2 deflated bytes can have"));
    EXPECT_TRUE(testing::contains(testing::error_of([&] { inflate_beginning(two, size, "entry"); }),
                                  "a size that 2 deflated bytes can have"));
  }
}

TEST(Inflate, TheErrorSaysWhatIsWrongAndWhere) {
  const auto bytes = raw_deflated("first and second");
  const auto exactly = [](std::span<const std::byte> data, uint64_t size) {
    return testing::error_of([&] { inflate_exactly(data, size, "entry"); });
  };
  const auto beginning = [](std::span<const std::byte> data, uint64_t size) {
    return testing::error_of([&] { inflate_beginning(data, size, "entry"); });
  };
  EXPECT_ERROR(exactly(bytes, 15), "entry", "deflated data with more content");
  EXPECT_ERROR(exactly(bytes, 17), "entry", "damaged data after 16");
  EXPECT_ERROR(beginning(bytes, 17), "entry", "16");
  EXPECT_ERROR(exactly({}, 0), "entry", "damaged data after 0");
  EXPECT_TRUE(inflate_beginning({}, 0, "entry").empty());
  std::vector<std::byte> without_mark(bytes.begin(), bytes.end() - 1);
  EXPECT_TRUE(testing::contains(exactly(without_mark, 16), "16 bytes of deflated data, got damaged data after "));
}

// A match of 258 bytes takes two bits.
TEST(Inflate, TheLimitOfTheRatioIsThatOfDeflate) {
  EXPECT_EQ(kMaxDeflateRatio, 1032u);
  const std::vector<std::byte> two(2);
  for (const uint64_t size : {2064, 3095}) {
    EXPECT_TRUE(testing::contains(testing::error_of([&] { inflate_exactly(two, size, "entry"); }), "deflated data"));
    EXPECT_TRUE(testing::contains(testing::error_of([&] { inflate_beginning(two, size, "entry"); }), "deflated data"));
  }
  EXPECT_ERROR(testing::error_of([&] { inflate_exactly(two, 3096, "entry"); }), "entry", "3096");
  EXPECT_ERROR(testing::error_of([&] { inflate_beginning(two, 3096, "entry"); }), "entry", "3096");
}

}  // namespace
}  // namespace vitrail
