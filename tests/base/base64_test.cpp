// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "tests/base/contents.h"
#include "tests/support/errors.h"
#include "tests/support/messages.h"
#include "vitrail/base/base64_internal.h"
#include "vitrail/base/random.h"

namespace vitrail {
namespace {

using testing::bytes_of;

// RFC 4648, section 10.
TEST(Base64, GivesTheExamplesOfRfc4648) {
  const std::string text = "foobar", want[] = {"", "Zg==", "Zm8=", "Zm9v", "Zm9vYg==", "Zm9vYmE=", "Zm9vYmFy"};
  for (size_t length = 0; length <= text.size(); ++length) {
    EXPECT_EQ(to_base64(bytes_of(text.substr(0, length))), want[length]);
    EXPECT_EQ(from_base64(want[length], "body"), text.substr(0, length));
  }
}

// Bit by bit, six of them for each character.
TEST(Base64, HasTheBitsOfTheBytesInTheirOrder) {
  const std::string letters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  RandomStream random(1);
  for (size_t length = 0; length < 200; ++length) {
    std::string bytes, want;
    for (size_t i = 0; i < length; ++i) bytes += static_cast<char>(random.bits() & 255);
    for (size_t bit = 0; bit < 8 * length; bit += 6) {
      size_t value = 0;
      for (size_t k = bit; k < bit + 6; ++k) {
        const int byte = k / 8 < length ? static_cast<unsigned char>(bytes[k / 8]) : 0;
        value = 2 * value + static_cast<size_t>(byte >> (7 - k % 8) & 1);
      }
      want += letters[value];
    }
    while (want.size() % 4 != 0) want += '=';
    ASSERT_EQ(to_base64(bytes_of(bytes)), want);
    ASSERT_EQ(from_base64(want, "body"), bytes);
  }
}

TEST(Base64, OtherTextIsAnErrorThatNamesItsPlace) {
  const std::string damaged[] = {"Zg=",
                                 "Z",
                                 "Zm9vZ",
                                 "Zm9-",
                                 "Zm9_",
                                 "Zm 9",
                                 "Zg==Zg==",
                                 "=Zg=",
                                 "====",
                                 "Z===",
                                 "Zm=v",
                                 "Zm9\n",
                                 std::string("Zm\0v", 4),
                                 "Zm9\xFF"};
  for (const std::string& text : damaged) {
    const std::string message = testing::error_of([&] { from_base64(text, "the image"); });
    EXPECT_TRUE(testing::contains(message, "the image: expected base64 with padding")) << text << ": " << message;
  }
}

TEST(Base64, LineBreaksAreSkipped) {
  for (const char* text : {"Zm9v\r\nYmFy", "Zm9vYmFy\n", "\nZm9\nvYmF\ny", "data:;base64,Zm9v\nYmFy"})
    EXPECT_EQ(from_base64_or_uri(text, "body"), "foobar") << text;
  EXPECT_TRUE(testing::contains(testing::error_of([] { from_base64_or_uri("https://a/b.png", "body"); }), "URLs"));
}

// One text for each content: the unused bits of the last character are zeros.
TEST(Base64, BitsAfterTheLastByteAreAnError) {
  EXPECT_EQ(from_base64("Zg==", "body"), "f");
  EXPECT_EQ(from_base64("Zm8=", "body"), "fo");
  for (const char* text : {"Zh==", "Zo==", "Zv==", "Zm9=", "Zm+=", "Zm/="}) {
    EXPECT_TRUE(testing::contains(testing::error_of([&] { from_base64(text, "body"); }), "after the last byte"))
        << text;
  }
}

TEST(Base64, TheErrorSaysWhatIsWrong) {
  const std::string length = "a length that is no multiple of 4", other = "another character",
                    bits = "bits after the last byte";
  const std::pair<std::string, std::string> cases[] = {{"Z", length},       {"Zg=", length}, {"Zm9vZ", length},
                                                       {"Zm9-", other},     {"====", other}, {"Z===", other},
                                                       {"Zg==Zg==", other}, {"Zh==", bits},  {"Zm9=", bits}};
  for (const auto& [text, what] : cases) {
    EXPECT_ERROR(testing::error_of([&, t = text] { from_base64(t, "body"); }), "body", what) << text;
  }
}

}  // namespace
}  // namespace vitrail
