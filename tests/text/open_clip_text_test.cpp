// SPDX-License-Identifier: Apache-2.0
#include "vitrail/text/open_clip_text.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "tests/support/errors.h"
#include "tests/support/paths.h"
#include "vitrail/base/error.h"
#include "vitrail/base/read_file.h"
#include "vitrail/text/fix_text_internal.h"
#include "vitrail/text/html_entities_internal.h"
#include "vitrail/text/mojibake_internal.h"
#include "vitrail/text/tokenizer.h"
#include "vitrail/text/unicode_internal.h"

namespace vitrail::text {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::json;

std::string fixed(std::string_view text) { return to_utf8(fix_text(code_points(text))); }
std::string unescaped(std::string_view text) { return to_utf8(unescape_html(code_points(text))); }

// The rows of a file of tools/golden/open_clip_texts.py.
Json rows_of(const fs::path& file) { return Json::parse(read_text_file(file, 1'000'000'000)); }

void expect_cleaned(const fs::path& file) {
  size_t different = 0;
  const Json rows = rows_of(file);
  for (const Json& row : rows) {
    const auto text = row[0].get<std::string>();
    const Json got{text, clean_lower(text), clean_whitespace(text), clean_canonicalize(text)};
    if (got != row && ++different <= 5) ADD_FAILURE() << "got  " << got.dump() << "\nwant " << row.dump();
  }
  EXPECT_GE(rows.size(), 400U);
  EXPECT_EQ(different, 0U) << "of " << rows.size() << " texts";
}

void expect_tokens(const fs::path& folder) {
  const auto tokenizer = open_tokenizer(folder / "bpe_simple_vocab_16e6.txt.gz", ClipForm::open_clip);
  size_t different = 0;
  for (const Json& row : rows_of(folder / "tokens.json")) {
    const std::vector<int64_t> ids = tokenizer->encode(clean_lower(row[0].get<std::string>()), 1 << 16);
    const Json got(std::vector<int64_t>(ids.begin() + 1, ids.end() - 1));
    if (got != row[1] && ++different <= 5) ADD_FAILURE() << row[0].dump() << "\ngot  " << got << "\nwant " << row[1];
  }
  EXPECT_EQ(different, 0U);
}

// The fixture, and a folder of many texts, which tools/golden/open_clip_texts.py makes.
TEST(OpenClipText, IsCleanedAndSplitAsByOpenClip) {
  std::vector<fs::path> folders{testing::fixture("text/open_clip")};
  if (const char* const given = std::getenv("VITRAIL_OPEN_CLIP_TEXTS")) folders.emplace_back(given);
  for (const fs::path& folder : folders) {
    SCOPED_TRACE(folder);
    expect_cleaned(folder / "cleaned.json");
    expect_tokens(folder);
  }
}

// Each of ftfy's steps by itself: what fix_text() of ftfy 6.3.1 gives.
TEST(FixText, HasFtfysSteps) {
  const std::pair<std::string, const char*> cases[] = {
      {"cats &amp;amp; dogs", "cats & dogs"},
      {"P&EACUTE;REZ, STRA&SZLIG;E", "PÉREZ, STRASSE"},
      {"this&not that &#59; &#x3b;", "this&not that &#59; &#x3b;"},
      {"&lt;b &amp; <b> &amp;\n&amp;", "&lt;b &amp; <b> &amp;\n&amp;"},
      {"&amp;\n<b>\n&amp;", "&\n<b>\n&amp;"},
      {"schÃ¶n, voilÃ\u00a0 le travail, Ã©tÃ©", "schön, voilà le travail, été"},
      {"Ã la mode", "à la mode"},
      {"Ã quele, Ã quela, Ã quilo, Ã s vezes", "àquele, àquela, àquilo, às vezes"},
      {"â€œquotedâ€\u009d â€” â€¦", "\"quoted\" — …"},
      {"ðŸ˜€ and \u00ed\u00a0\u00bd\u00ed\u00b8\u0080", "😀 and 😀"},
      {"Ð¿Ñ€Ð¸Ð²ÐµÑ‚", "привет"},
      {"ÃƒÂ©", "é"},
      {"Œ ", "Œ "},
      {"\u0091\u0086", "\u0520"},
      {"a\u0093b\u0094\u0085", "a\"b\"…"},
      {"ﬁne oﬃce ĳs ŉ", "fine office ijs 'n"},
      {"ＲＥＤ\u3000ｱﾊﾟｰﾄ￡￣", "RED アパート£ \u0304"},
      {"‘it’s’ “red” ʼ‛‟", "'it's' \"red\" ''\""},
      {"a\r\nb\rc\u2028d\u2029e", "a\nb\nc\nd\ne"},
      {"\x1b[36;44mblue\x1b[0m\x1b[", "blue["},
      {std::string("a\0b\x07\x0b\x7f", 6) + "\ufeff\ufffa\u206ac\t\f", "abc\t\f"},
      {"e\u0301 \u212b", "é Å"},
      {"√© d√©j√† vu", "é déjà vu"},
      {"Å, ÒwÓ, 20°C, «oui», ¿qué?, £5", "Å, ÒwÓ, 20°C, «oui», ¿qué?, £5"},
      {"", ""}};
  for (const auto& [text, want] : cases) EXPECT_EQ(fixed(text), want) << text;
}

// Python's html.unescape().
TEST(UnescapeHtml, IsPythons) {
  const std::pair<const char*, const char*> cases[] = {
      {"&amp &ampx &notit; &notin;", "& &x ¬it; ∉"},
      {"&#228;&#xe4&#XE4;&#9999999999999;", "äää\ufffd"},
      {"&#128;&#x81;&#0;&#xd800;&#1;&#xfffe;|", "€\u0081\ufffd\ufffd|"},
      {"&; && &# &#; &#x; &x &NotEqualTilde; &fjlig;", "&; && &# &#; &#x; &x ≂\u0338 fj"},
      {"&CounterClockwiseContourIntegral;", "∳"},
      {"&amp;amp;", "&amp;"}};
  for (const auto& [text, want] : cases) EXPECT_EQ(unescaped(text), want) << text;
}

// A text whose entities were escaped again and again takes no quadratic time.
TEST(FixText, UnescapesTheEntitiesOfAHostileTextABoundedNumberOfTimes) {
  std::string text = "&";
  for (int i = 0; i < 1000; ++i) text += "amp;";
  EXPECT_EQ(fixed(text).size(), text.size() - 16 * 4);
}

TEST(CleanCanonicalize, KeepsWordsAndSingleSpaces) {
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
  for (const auto& [text, canonical] : texts) EXPECT_EQ(clean_canonicalize(text), canonical) << text;
}

TEST(CleanCanonicalize, OtherBytesThanUtf8AreAnError) { EXPECT_THROW(clean_canonicalize("\xff"), Error); }

TEST(CleanCanonicalize, KeepsOtherSymbolsThanAsciiPunctuation) {
  EXPECT_EQ(clean_canonicalize("/0:9;@A[Z]`a{z}~"), "09azaz");
  EXPECT_EQ(clean_canonicalize("5\u00b0 \u00abx\u00bb \u20ac"), "5\u00b0 \u00abx\u00bb \u20ac");
  EXPECT_EQ(clean_canonicalize("a\u001cb\u001fc\u001bd"), "abcd") << "control characters, for ftfy";
  EXPECT_EQ(clean_canonicalize("ΑΣ_ΣΑ"), "ας σα");
}

}  // namespace
}  // namespace vitrail::text
