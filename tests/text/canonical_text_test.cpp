// SPDX-License-Identifier: Apache-2.0
#include "vitrail/text/canonical_text.h"

#include <gtest/gtest.h>

#include "vitrail/base/error.h"

namespace vitrail::text {
namespace {

// What OpenCLIP's canonicalize_text gives: str.replace("_", " "), translate without string.punctuation, lower(),
// " ".join(split()).
TEST(CanonicalText, IsOpenClips) {
  const std::pair<const char*, const char*> texts[] = {{"a photo", "a photo"},
                                                       {"A Photo, of\ta CAT!", "a photo of a cat"},
                                                       {"great_white_shark", "great white shark"},
                                                       {"  both\n ends  ", "both ends"},
                                                       {"_under_", "under"},
                                                       {"- dash -", "dash"},
                                                       {"it's", "its"},
                                                       {"don't stop--now", "dont stopnow"},
                                                       {"\u00c4RGER\u00a0X", "\u00e4rger x"},
                                                       {"\u2014", "\u2014"},
                                                       {"", ""},
                                                       {"?!", ""},
                                                       {" _ ", ""}};
  for (const auto& [text, canonical] : texts) EXPECT_EQ(canonical_text(text), canonical) << text;
}

TEST(CanonicalText, OtherBytesThanUtf8AreAnError) { EXPECT_THROW(canonical_text("\xff"), Error); }

TEST(CanonicalText, KeepsOtherSymbolsThanAsciiPunctuation) {
  EXPECT_EQ(canonical_text("/0:9;@A[Z]`a{z}~"), "09azaz");
  EXPECT_EQ(canonical_text("5\u00b0 \u00abx\u00bb \u20ac"), "5\u00b0 \u00abx\u00bb \u20ac");
  EXPECT_EQ(canonical_text("a\u001cb\u001fc\u001bd"), "a b c\u001bd");
  EXPECT_EQ(canonical_text("ΑΣ_ΣΑ"), "ας σα");
}

}  // namespace
}  // namespace vitrail::text
