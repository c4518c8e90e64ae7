// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <fstream>
#include <iomanip>
#include <map>
#include <nlohmann/json.hpp>
#include <random>
#include <sstream>

#include "tests/support/errors.h"
#include "tests/support/messages.h"
#include "tests/support/paths.h"
#include "vitrail/text/unigram_tokenizer_internal.h"

namespace vitrail::text {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::json;
using Ids = std::vector<int64_t>;
using testing::contains;
using testing::error_of;

// The pieces: 0 <pad>, 1 </s>, 2 <unk>, 3 "▁", 4 "▁cat", 5 "cat", 6 "a", 7 "▁▁".  "c" alone is unknown.
Json small_json() {
  return Json::parse(R"({
    "model": {"type": "Unigram", "unk_id": 2, "vocab": [["<pad>", 0], ["</s>", 0], ["<unk>", 0], ["▁", -3], ["▁cat", -4],
              ["cat", -5], ["a", -6], ["▁▁", -4]]},
    "added_tokens": [{"content": "<pad>", "id": 0}, {"content": "</s>", "id": 1}, {"content": "<x>", "id": 8}],
    "pre_tokenizer": {"type": "Metaspace", "replacement": "▁"},
    "post_processor": {"type": "TemplateProcessing", "single": [{"Sequence": {"id": "A"}}, {"SpecialToken": {"id": "</s>"}}],
                       "special_tokens": {"</s>": {"id": "</s>", "ids": [1]}}}})");
}
UnigramTokenizer tokenizer_of(const Json& json) { return {read_unigram_json(json, "/absent/tokenizer.json"), "test"}; }
Json with(const char* pointer, const Json& value) {
  Json json = small_json();
  json[Json::json_pointer(pointer)] = value;
  return json;
}
Ids content_of(const Json& json, const std::string& text) {
  Ids ids = tokenizer_of(json).encode(text, 1000);
  EXPECT_EQ(ids.back(), 1);
  ids.pop_back();
  return ids;
}

// tokenizers: Metaspace's prepend_scheme is "always" if the file does not name it.
TEST(Metaspace, IsPutInFrontOfEachPartUnlessTheFileSaysOtherwise) {
  struct Case {
    Json pre_tokenizer;
    Ids ids;  // ids of "cat<x>cat"
  };
  const Json plain{{"type", "Metaspace"}, {"replacement", "▁"}};
  const auto changed = [&](const char* field, const Json& value) {
    Json json = plain;
    json[field] = value;
    return json;
  };
  const Case cases[] = {{plain, {4, 8, 4}},
                        {changed("prepend_scheme", "always"), {4, 8, 4}},
                        {changed("prepend_scheme", "first"), {4, 8, 5}},
                        {changed("prepend_scheme", "never"), {5, 8, 5}},
                        {changed("add_prefix_space", true), {4, 8, 4}},
                        {changed("add_prefix_space", false), {5, 8, 5}}};
  for (const auto& [pre_tokenizer, ids] : cases) {
    EXPECT_EQ(content_of(with("/pre_tokenizer", pre_tokenizer), "cat<x>cat"), ids) << pre_tokenizer;
  }
  EXPECT_EQ(content_of(small_json(), " cat"), Ids{4}) << "a text with a space has one already";
  EXPECT_EQ(content_of(with("/pre_tokenizer/prepend_scheme", "first"), "<x>cat"), (Ids{8, 5}));
}

TEST(Metaspace, BeginsAWordUnlessTheFileSaysOtherwise) {
  EXPECT_EQ(content_of(small_json(), "a  cat"), (Ids{3, 6, 3, 4}));
  EXPECT_EQ(content_of(with("/pre_tokenizer/split", false), "a  cat"), (Ids{3, 6, 3, 4}));
  EXPECT_EQ(content_of(small_json(), "a  "), (Ids{3, 6, 3, 3}));
  EXPECT_EQ(content_of(with("/pre_tokenizer/split", false), "a  "), (Ids{3, 6, 7})) << "a piece over two symbols";
  EXPECT_TRUE(content_of(small_json(), "").empty());
}

TEST(Metaspace, WithWhitespaceSplitEachWordHasOne) {
  const Json split = {
      {"type", "Sequence"},
      {"pretokenizers", {{{"type", "WhitespaceSplit"}}, {{"type", "Metaspace"}, {"replacement", "▁"}}}}};
  EXPECT_EQ(content_of(with("/pre_tokenizer", split), " cat \t\u3000 cat\n"), (Ids{4, 4}));
  EXPECT_TRUE(content_of(with("/pre_tokenizer", split), " \n").empty());
  Json first = split;
  first["pretokenizers"][1]["prepend_scheme"] = "first";
  EXPECT_EQ(content_of(with("/pre_tokenizer", first), "cat cat"), (Ids{4, 5}));
}

TEST(Unigram, AStripIsOfItsSide) {
  const Json scheme = with("/pre_tokenizer/prepend_scheme", "never");
  for (const bool left : {false, true}) {
    for (const bool right : {false, true}) {
      Json json = scheme;
      json["normalizer"] = {{"type", "Strip"}, {"strip_left", left}, {"strip_right", right}};
      Ids want{left ? 5 : 4};
      if (!right) want.push_back(3);
      EXPECT_EQ(content_of(json, " cat "), want) << left << right;
    }
  }
}

TEST(Unigram, ReplacesTextAndRunsOfSpaces) {
  const auto replaced = [&](const Json& pattern, const std::string& to, const std::string& text) {
    Json json = with("/pre_tokenizer/prepend_scheme", "never");
    json["normalizer"] = {{"type", "Replace"}, {"pattern", pattern}, {"content", to}};
    return content_of(json, text);
  };
  EXPECT_EQ(replaced({{"String", "xx"}}, "cat", "xxxxx"), (Ids{5, 5, 2}));
  EXPECT_EQ(replaced({{"String", "b"}}, "", "bcabtb"), Ids{5}) << "at both ends";
  EXPECT_EQ(replaced({{"Regex", " {2,}"}}, "a", " cat  cat   "), (Ids{4, 6, 5, 6}));
  EXPECT_EQ(replaced({{"Regex", " {2,}"}}, "a", "   "), Ids{6});
}

// Each part of a text between tokens is normalised; then the tokens of the normalised text are found.
TEST(Unigram, NormalisedTokensAreFoundAfterTheNormalizers) {
  Json json = with("/normalizer", {{"type", "Lowercase"}});
  json["added_tokens"].push_back({{"content", "cat"}, {"id", 9}, {"normalized", true}});
  EXPECT_EQ(content_of(json, "CAT<x>Cat"), (Ids{9, 8, 9}));
  EXPECT_EQ(tokenizer_of(json).vocab_size(), 10);
}

TEST(Unigram, UnknownCharactersSideBySideAreOneToken) {
  EXPECT_EQ(content_of(small_json(), "zzé"), (Ids{3, 2}));
  EXPECT_EQ(content_of(small_json(), "zaz"), (Ids{3, 2, 6, 2}));
}

TEST(Unigram, ABeginningTokenIsTheTemplates) {
  Json json = small_json();
  json["post_processor"]["single"].insert(json["post_processor"]["single"].begin(),
                                          Json{{"SpecialToken", {{"id", "<x>"}}}});
  json["post_processor"]["special_tokens"]["<x>"] = {{"ids", Json::array({8U})}};
  const UnigramTokenizer tokenizer = tokenizer_of(json);
  EXPECT_EQ(tokenizer.encode("cat", 64), (Ids{8, 4, 1}));
  const testing::Warnings warnings;
  EXPECT_EQ(tokenizer.encode("cat", 2), (Ids{8, 1})) << "a context of the special tokens alone";
  EXPECT_EQ(tokenizer.encode("", 2), (Ids{8, 1}));
  EXPECT_EQ(warnings.messages.size(), 1u);
  for (const int64_t context : {-1, 0, 1}) {
    EXPECT_TRUE(contains(error_of([&] { tokenizer.encode("cat", context); }), "a context of at least 2 tokens"));
  }
  EXPECT_EQ(tokenizer_of(small_json()).encode("cat", 1), Ids{1});
  EXPECT_EQ(tokenizer_of(small_json()).encode("cat", 2), (Ids{4, 1}));
}

// The token of padding may be one that the vocabulary of pieces does not have.
TEST(Unigram, PaddingMayBeAnAddedToken) {
  const fs::path folder = testing::scratch_folder();
  const auto pad_with = [&](const std::string& config) {
    std::ofstream(folder / "tokenizer_config.json") << config;
    return UnigramTokenizer(read_unigram_json(small_json(), folder / "tokenizer.json"), "test").pad_id();
  };
  EXPECT_EQ(pad_with(R"({"pad_token": "<x>"})"), 8);
  EXPECT_EQ(pad_with(R"({"pad_token": {"content": "<pad>"}})"), 0);
  EXPECT_EQ(pad_with(R"({"pad_token": "▁"})"), 3) << "a piece";
  EXPECT_EQ(pad_with(R"({"pad_token": "other"})"), 1) << "the end of the text";
  EXPECT_EQ(pad_with("{}"), 1);
}

TEST(Unigram, MalformedFilesAreErrors) {
  const std::pair<const char*, Json> cases[] = {
      {"/model/vocab/3", Json::array({std::string(1025, 'a'), -1})},
      {"/model/vocab/3/1", "x"},
      {"/model/vocab", 1},
      {"/model/unk_id", 8U},
      {"/model/unk_id", -1},
      {"/pre_tokenizer/prepend_scheme", "last"},
      {"/pre_tokenizer/replacement", "_"},
      {"/post_processor/single", Json::array()},
      {"/post_processor/special_tokens/<~1s>/ids", {1, 2}},
      {"/normalizer", {{"type", "Replace"}, {"pattern", {{"String", "a"}}}, {"content", std::string(17, 'a')}}}};
  for (const auto& [pointer, value] : cases) {
    EXPECT_TRUE(contains(error_of([&, p = pointer, v = value] { tokenizer_of(with(p, v)); }), "tokenizer.json"))
        << pointer;
  }
  EXPECT_NO_THROW(tokenizer_of(with("/model/vocab/3", Json::array({std::string(1024, 'a'), -1}))));
  EXPECT_NO_THROW(tokenizer_of(with("/model/unk_id", 7U)));
  Json without_unknown = small_json();
  without_unknown["model"].erase("unk_id");
  EXPECT_TRUE(contains(error_of([&] { tokenizer_of(without_unknown); }), "unk_id or byte_fallback"));
  without_unknown["model"]["byte_fallback"] = true;
  EXPECT_TRUE(contains(error_of([&] { tokenizer_of(without_unknown); }), "a piece for each byte"));
}

// The highest score of all segmentations, by trying each of them.
double best_score(const std::map<std::string, double>& pieces, const std::string& text, double unknown) {
  if (text.empty()) return 0;
  double best = -INFINITY;
  for (size_t length = 1; length <= text.size(); ++length) {
    const auto piece = pieces.find(text.substr(0, length));
    if (piece == pieces.end() && length > 1) continue;
    const double score = piece == pieces.end() ? unknown : piece->second;
    best = std::max(best, score + best_score(pieces, text.substr(length), unknown));
  }
  return best;
}

// tokenizers does the same: of segmentations with one score, the one with the longest last piece.
TEST(Unigram, OfEqualScoresTheLongestLastPieceIsTaken) {
  UnigramFile file{.pieces = {{"</s>", 0}, {"<unk>", 0}}, .unknown_id = 1, .prepend = PrependScheme::never};
  for (const auto& [piece, score] : {std::pair{"a", -1.0}, {"b", -1.0}, {"ab", -2.0}, {"ba", -2.0}})
    file.pieces.emplace_back(piece, score);
  const UnigramTokenizer tokenizer(file, "test");
  EXPECT_EQ(tokenizer.encode("ab", 64), (Ids{4, 0}));
  EXPECT_EQ(tokenizer.encode("aba", 64), (Ids{2, 5, 0}));
}

TEST(Unigram, TakesASegmentationOfTheHighestScore) {
  std::mt19937 random(7);
  const auto letters = [&](size_t count) {
    std::string text;
    for (size_t i = 0; i < count; ++i) text += static_cast<char>('a' + random() % 4);
    return text;
  };
  for (int round = 0; round < 60; ++round) {
    std::map<std::string, double> pieces;
    double lowest = 0;
    while (pieces.size() < 8)
      pieces.emplace(letters(1 + random() % 3), -1e-5 * static_cast<double>(random() % 1'000'003));
    UnigramFile file{.pieces = {{"</s>", 0}, {"<unk>", 0}}, .unknown_id = 1, .prepend = PrependScheme::never};
    for (const auto& [piece, score] : pieces) {
      lowest = std::min(lowest, score);
      file.pieces.emplace_back(piece, score);
    }
    const UnigramTokenizer tokenizer(file, "test");
    for (int i = 0; i < 10; ++i) {
      const std::string text = letters(1 + random() % 9);
      const Ids ids = tokenizer.encode(text, 100);
      double score = 0;
      size_t known = 0, at = 0;
      for (size_t k = 0; k + 1 < ids.size(); ++k) {
        const auto& [piece, piece_score] = file.pieces[static_cast<size_t>(ids[k])];
        if (ids[k] == 1) {
          EXPECT_NE(ids[k + 1], 1) << text;
          continue;
        }
        at = text.find(piece, at);
        ASSERT_NE(at, text.npos) << text;
        at += piece.size(), known += piece.size(), score += piece_score;
      }
      EXPECT_EQ(ids.back(), 0);
      score += static_cast<double>(text.size() - known) * (lowest - 10);
      EXPECT_NEAR(score, best_score(pieces, text, lowest - 10), 1e-9) << text;
    }
  }
}

TEST(Unigram, RefusalsNameTheFieldAndWhatIsThere) {
  const std::string at = "/absent/tokenizer.json: ";
  const auto refusal = [](const char* pointer, const std::string& value) {
    return error_of([&] { tokenizer_of(with(pointer, Json::parse(value))); });
  };
  const std::string sequence = R"({"Sequence":{"id":"A"}})", end = R"({"SpecialToken":{"id":"</s>"}})";
  const struct {
    const char* pointer;
    std::string value, message;
  } cases[] = {
      {"/model/vocab", "1", "model.vocab: expected a list of pieces with their scores, got 1"},
      {"/model/vocab", "[]", "model.vocab: expected a list of pieces with their scores, got []"},
      {"/model/vocab/3", R"(["a"])", R"(model.vocab: expected [piece, score], got ["a"])"},
      {"/model/vocab/3", R"(["a",1,2])", R"(model.vocab: expected [piece, score], got ["a",1,2])"},
      {"/model/vocab/3", "[1,1]", "model.vocab: expected [piece, score], got [1,1]"},
      {"/model/unk_id", "8", "model.unk_id: expected the index of a piece, got 8"},
      {"/model/unk_id", "\"2\"", "model.unk_id: expected the index of a piece, got \"2\""},
      {"/added_tokens/0/id", "\"2\"", "added_tokens: expected content and id of each token, got another"},
      {"/normalizer", R"({"type":"Nmt"})",
       "normalizer: expected Precompiled, Lowercase, NFC, Strip, Replace or a Sequence of them, got \"Nmt\""},
      {"/normalizer", R"({"type":"Sequence","normalizers":[{"type":"Sequence"}]})",
       R"(normalizer: expected one sequence, got {"type":"Sequence"})"},
      {"/normalizer", R"({"type":"Replace","pattern":{"Regex":"a+"},"content":""})",
       R"(normalizer: expected a text, or the pattern " {2,}", got {"Regex":"a+"})"},
      {"/normalizer", R"({"type":"Replace","pattern":{"String":"a"},"content":"12345678901234567"})",
       R"(normalizer: expected at most 16 bytes instead, got "12345678901234567")"},
      {"/pre_tokenizer", R"({"type":"ByteLevel"})",
       R"(pre_tokenizer: expected Metaspace, with WhitespaceSplit in front or without, got {"type":"ByteLevel"})"},
      {"/pre_tokenizer", R"({"pretokenizers":[],"type":"Sequence"})", "pre_tokenizer: expected a list, got []"},
      {"/pre_tokenizer", R"({"pretokenizers":[{"type":"WhitespaceSplit"}],"type":"Sequence"})",
       "pre_tokenizer: expected Metaspace, with WhitespaceSplit in front or without, got "
       R"({"pretokenizers":[{"type":"WhitespaceSplit"}],"type":"Sequence"})"},
      {"/pre_tokenizer", R"({"type":"Metaspace"})",
       R"(pre_tokenizer: expected the replacement "▁", got {"type":"Metaspace"})"},
      {"/pre_tokenizer", R"({"prepend_scheme":"last","replacement":"▁"})",
       "pre_tokenizer: expected Metaspace, with WhitespaceSplit in front or without, got "
       R"({"prepend_scheme":"last","replacement":"▁"})"},
      {"/pre_tokenizer", R"({"prepend_scheme":"last","replacement":"▁","type":"Metaspace"})",
       "pre_tokenizer: expected always, first or never, got "
       R"({"prepend_scheme":"last","replacement":"▁","type":"Metaspace"})"},
      {"/post_processor", R"({"type":"ByteLevel"})", "post_processor: expected TemplateProcessing, got \"ByteLevel\""},
      {"/post_processor/type", "\"Bert\"", "post_processor: expected TemplateProcessing, got \"Bert\""},
      {"/post_processor/single", "1", "post_processor: expected TemplateProcessing, got \"TemplateProcessing\""},
      {"/post_processor/single", "[" + end + "," + sequence + "]",
       "post_processor.single: expected a text and the end-of-text token, with a token in front or without, got [" +
           end + "," + sequence + "]"},
      {"/post_processor/single", "[" + sequence + "]",
       "post_processor.single: expected a text and the end-of-text token, with a token in front or without, got [" +
           sequence + "]"},
      {"/post_processor/single/1/SpecialToken/id", "\"<x>\"",
       R"(post_processor: expected a token with one id, got {"SpecialToken":{"id":"<x>"}})"},
      {"/post_processor/special_tokens/<~1s>/ids", "[]", "post_processor: expected a token with one id, got " + end},
      {"/post_processor/special_tokens/<~1s>/ids", "[1,1]", "post_processor: expected a token with one id, got " + end},
      {"/post_processor/special_tokens/<~1s>/ids", "[-1]", "post_processor: expected a token with one id, got " + end}};
  for (const auto& [pointer, value, message] : cases) EXPECT_EQ(refusal(pointer, value), at + message) << value;
  const Json infinite = Json::array({"a", INFINITY});
  EXPECT_ERROR(error_of([&] { tokenizer_of(with("/model/vocab/3", infinite)); }), at + "model.vocab", "[\"a\",null]");
}

TEST(Unigram, AFileHasItsFieldsAndTheirDefaults) {
  const UnigramFile file = read_unigram_json(small_json(), "/absent/tokenizer.json");
  ASSERT_EQ(file.pieces.size(), 8u);
  EXPECT_EQ(file.pieces[4], (std::pair<std::string, double>("▁cat", -4)));
  EXPECT_EQ(file.unknown_id, 2);
  EXPECT_FALSE(file.byte_fallback || file.split_at_white_space);
  EXPECT_TRUE(file.split_at_symbol);
  EXPECT_EQ(file.added.size(), 3u);
  EXPECT_TRUE(file.normalizers.empty());
  EXPECT_EQ(file.prepend, PrependScheme::always);
  EXPECT_EQ(file.bos, std::nullopt);
  EXPECT_EQ(file.eos, 1);
  EXPECT_EQ(file.pad, 1);
  const UnigramTokenizer tokenizer(file, "test");
  EXPECT_EQ(tokenizer.eos_id(), 1);
  EXPECT_EQ(tokenizer.vocab_size(), 9);
  EXPECT_TRUE(tokenizer.pads_to_context());
}

TEST(Unigram, NormalizersAreThoseOfTheFile) {
  const auto normalized = [](const Json& normalizer, const std::string& text) {
    std::string result = text;
    for (const auto& step : read_unigram_json(with("/normalizer", normalizer), "/absent/t.json").normalizers)
      result = step(result);
    return result;
  };
  EXPECT_EQ(normalized(Json(), "Aé"), "Aé");
  EXPECT_EQ(normalized({{"type", "Lowercase"}}, "AÉσΣ"), "aéσσ");
  EXPECT_EQ(normalized({{"type", "NFC"}}, "Ae\u0301"), "A\u00e9");
  EXPECT_EQ(normalized({{"type", "Strip"}}, " a "), " a ");
  EXPECT_EQ(normalized({{"type", "Strip"}, {"strip_left", true}, {"strip_right", true}}, "\u3000 \t"), "");
  EXPECT_EQ(normalized({{"type", "Strip"}, {"strip_right", true}}, "\u3000é\u3000\n"), "\u3000é");
  EXPECT_EQ(normalized({{"type", "Precompiled"}, {"precompiled_charsmap", ""}}, "Aﬁ"), "Aﬁ");
  EXPECT_EQ(normalized({{"type", "Replace"}, {"pattern", {{"String", "ab"}}}, {"content", "1234567890123456"}}, "aab"),
            "a1234567890123456");
  EXPECT_EQ(normalized({{"type", "Replace"}, {"pattern", {{"String", "a"}}}, {"content", "aa"}}, "aba"), "aabaa");
  EXPECT_EQ(normalized({{"type", "Replace"}, {"pattern", {{"Regex", " {2,}"}}}, {"content", "_"}}, " a  b   "),
            " a_b_");
  const Json sequence = Json::parse(R"({"type": "Sequence", "normalizers": [
      {"type": "Lowercase"}, {"type": "Replace", "pattern": {"String": "a"}, "content": "B"}]})");
  EXPECT_EQ(normalized(sequence, "Abc"), "Bbc") << "in this order";
}

TEST(Unigram, TokensAndTheirIdsHaveARange) {
  const auto tokenizer = [](int64_t added, std::optional<int64_t> bos, int64_t eos, int64_t pad) {
    UnigramFile file{.pieces = {{"<unk>", 0}, {"a", -1}}, .unknown_id = 0};
    file.added.push_back({.content = "<x>", .id = added});
    file.bos = bos, file.eos = eos, file.pad = pad;
    return UnigramTokenizer(file, "test");
  };
  EXPECT_EQ(tokenizer(2, 2, 1, 0).vocab_size(), 3);
  EXPECT_EQ(tokenizer(0, {}, 1, 1).vocab_size(), 2) << "an added token that is a piece";
  EXPECT_EQ(tokenizer(2147483647, {}, 1, 1).vocab_size(), 2147483648);
  const auto refusal = [&](int64_t added, std::optional<int64_t> bos, int64_t eos, int64_t pad) {
    return error_of([&] { tokenizer(added, bos, eos, pad); });
  };
  EXPECT_ERROR(refusal(-1, {}, 0, 0), "test", "-1");
  EXPECT_ERROR(refusal(2147483648, {}, 0, 0), "test", "2147483648");
  EXPECT_ERROR(refusal(2, 3, 0, 0), "test", "3");
  EXPECT_ERROR(refusal(2, {}, 4, 0), "test", "4");
  EXPECT_ERROR(refusal(2, {}, 0, 5), "test", "5");
}

// SentencePiece's unk_penalty: an unknown character costs 10 more than the rarest piece.
TEST(Unigram, AnUnknownCharacterCostsTenMoreThanTheRarestPiece) {
  const auto encoded = [](double score) {
    const UnigramFile file{.pieces = {{"</s>", 0}, {"<unk>", 0}, {"xy", score}, {"z", score}, {"yz", 0}, {"y", score}},
                           .unknown_id = 1,
                           .prepend = PrependScheme::never};
    return UnigramTokenizer(file, "test").encode("xyz", 64);
  };
  EXPECT_EQ(encoded(-9.9), (Ids{2, 3, 0})) << "-19.8 is more than -9.9 - 10";
  EXPECT_EQ(encoded(-10.1), (Ids{1, 4, 0})) << "-20.2 is less than -10.1 - 10";
}

TEST(Unigram, AWordAfterATokenIsNotTheFirst) {
  Json json = with("/pre_tokenizer/prepend_scheme", "first");
  json["added_tokens"].push_back({{"content", "<y>"}, {"id", 9}, {"normalized", true}});
  EXPECT_EQ(content_of(json, "<y>cat"), (Ids{9, 5}));
  EXPECT_EQ(content_of(json, "cat<y>cat"), (Ids{4, 9, 5}));
  EXPECT_EQ(content_of(json, "cat<x><y>cat"), (Ids{4, 8, 9, 5}));
}

// The bytes of a word without pieces stand for it, and bytes beside a piece for the others.
TEST(Unigram, BytesStandForUnknownCharactersBesidePieces) {
  UnigramFile file{.pieces = {{"</s>", 0}, {"cat", -1}}, .byte_fallback = true, .prepend = PrependScheme::never};
  for (int byte = 0; byte < 256; ++byte) {
    std::ostringstream piece;
    piece << "<0x" << std::uppercase << std::hex << std::setw(2) << std::setfill('0') << byte << ">";
    file.pieces.emplace_back(piece.str(), -20);
  }
  const UnigramTokenizer tokenizer(file, "test");
  EXPECT_EQ(tokenizer.encode("cat\u00ffb", 64), (Ids{1, 2 + 0xc3, 2 + 0xbf, 2 + 'b', 0}));
  file.pieces.back().first = "<0xff>";
  EXPECT_ERROR(error_of([&] { UnigramTokenizer(file, "test"); }), "test", "none for some");
  file.byte_fallback = false;
  EXPECT_ERROR(error_of([&] { UnigramTokenizer(file, "test"); }), "test", "neither");
}

}  // namespace
}  // namespace vitrail::text
