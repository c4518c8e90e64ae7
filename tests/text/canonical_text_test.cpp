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

}  // namespace
}  // namespace vitrail::text
