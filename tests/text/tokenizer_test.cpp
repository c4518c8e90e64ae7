// SPDX-License-Identifier: Apache-2.0
#include "vitrail/text/tokenizer.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>
#include <sstream>

#include "tests/support/errors.h"
#include "tests/support/messages.h"
#include "tests/support/paths.h"
#include "tests/support/program.h"
#include "vitrail/base/read_file.h"
#include "vitrail/text/added_tokens_internal.h"
#include "vitrail/text/tokenizer_files_internal.h"

namespace vitrail::text {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::json;

int64_t context_of(const fs::path& folder) { return folder.filename().string().starts_with("clip") ? 77 : 64; }

// Compares the tokenizer of a folder with the ids in its cases.json, which its reference gave.
void expect_ids_of_cases(const fs::path& folder) {
  const testing::Warnings of_long_texts;
  const auto tokenizer = open_tokenizer(folder);
  const Json cases = Json::parse(read_text_file(folder / "cases.json", 1'000'000'000));
  ASSERT_GT(cases.size(), 0U);
  size_t different = 0;
  for (const Json& item : cases) {
    const auto text = item[0].get<std::string>();
    const auto want = item[1].get<std::vector<int64_t>>();
    const std::vector<int64_t> got = tokenizer->encode(text, context_of(folder));
    if (got == want) continue;
    if (++different <= 5) ADD_FAILURE() << item[0] << "\n  got  " << Json(got) << "\n  want " << item[1];
  }
  EXPECT_EQ(different, 0U) << "of " << cases.size() << " texts";
}

// The fixtures, and the folders in VITRAIL_TOKENIZER_CASES, which tools/golden/text_tokenizers.py makes.
std::vector<fs::path> folders_of_cases() {
  std::vector<fs::path> folders;
  for (const char* name : {"clip", "gemma", "siglip", "unigram", "xlm"}) {
    folders.push_back(testing::fixture(str("text/", name)));
  }
  if (const char* const given = std::getenv("VITRAIL_TOKENIZER_CASES")) {
    for (const auto& entry : fs::directory_iterator(given)) folders.push_back(entry.path());
  }
  return folders;
}

TEST(Tokenizer, IdsEqualTheReference) {
  for (const fs::path& folder : folders_of_cases()) {
    SCOPED_TRACE(folder);
    expect_ids_of_cases(folder);
  }
}

TEST(Tokenizer, CutsATextToTheContextWithAWarningAndKeepsTheEnd) {
  const auto tokenizer = open_tokenizer(testing::fixture("text/clip"));
  const testing::Warnings warnings;
  const std::vector<int64_t> all = tokenizer->encode("a photo of a cat", 77);
  ASSERT_GT(all.size(), 5U);
  EXPECT_TRUE(warnings.messages.empty());
  std::vector<int64_t> want(all.begin(), all.begin() + 4);
  want.push_back(tokenizer->eos_id());
  EXPECT_EQ(tokenizer->encode("a photo of a cat", 5), want);
  EXPECT_TRUE(warnings.any(str("\"a photo of a cat\": cut to the model's context of 5 tokens, from ", all.size())));
  tokenizer->encode("a" + std::string(60, 'b'), 3);
  EXPECT_TRUE(warnings.any("\"a" + std::string(39, 'b') + "…\": cut to the model's context of 3 tokens"));
}

TEST(Tokenizer, RefusesTextThatIsNotUtf8) {
  for (const char* name : {"clip", "gemma", "siglip", "unigram"}) {
    const auto tokenizer = open_tokenizer(testing::fixture(str("text/", name)));
    const std::string message = testing::error_of([&] { tokenizer->encode("a \xff cat", 64); });
    EXPECT_TRUE(testing::contains(message, "text: expected UTF-8, got \"a \\xFF cat\"")) << message;
  }
}

// A word of many letters takes O(n log n) merges, not O(n²).
TEST(Tokenizer, EncodesALongWord) {
  const auto tokenizer = open_tokenizer(testing::fixture("text/clip"));
  EXPECT_GT(tokenizer->encode(std::string(1'000'000, 'a'), 10'000'000).size(), 1000U);
}

fs::path folder_with(const std::string& name, const std::string& content) {
  const fs::path folder = testing::scratch_folder();
  std::ofstream(folder / name) << content;
  return folder;
}

// OpenCLIP's file has the merges alone; the order of the other tokens is fixed.
TEST(OpenTokenizer, ReadsOpenClipsFileOfMerges) {
  const fs::path files = testing::fixture("text/clip");
  std::string merges = read_text_file(files / "merges.txt");
  merges.replace(0, merges.find('\n'), "\"bpe_simple_vocab_16e6.txt#version: 0.2");
  const auto tokenizer = open_tokenizer(folder_with("bpe_simple_vocab_16e6.txt", merges));
  const auto same = open_tokenizer(files);
  EXPECT_EQ(tokenizer->vocab_size(), same->vocab_size());
  const std::string text = "A photo of two dogs, isn't it? 猫";
  EXPECT_EQ(tokenizer->encode(text, 77), same->encode(text, 77));
}

// OpenCLIP's tokenizer takes texts as they are, without NFC and lower case; its pattern ignores the case of ASCII and
// of "ſ".  transformers' special tokens are text to it.
TEST(OpenTokenizer, OpenClipsFormTakesATextAsItIs) {
  const fs::path files = testing::fixture("text/clip");
  const auto transformers = open_tokenizer(files), open_clip = open_tokenizer(files, ClipForm::open_clip);
  const auto content = [](const Tokenizer& tokenizer, const char* text) {
    const std::vector<int64_t> ids = tokenizer.encode(text, 77);
    return std::vector<int64_t>(ids.begin() + 1, ids.end() - 1);
  };
  for (const char* text : {"a photo of two dogs, isn't it?", "we'll see 12 cats!"})
    EXPECT_EQ(content(*open_clip, text), content(*transformers, text)) << text;
  EXPECT_NE(content(*open_clip, "Cat"), content(*open_clip, "cat"));
  EXPECT_NE(content(*open_clip, "e\u0301"), content(*open_clip, "\u00e9"));
  EXPECT_EQ(content(*open_clip, "<start_of_text> <end_of_text>"),
            content(*transformers, "<|startoftext|><|endoftext|>"));
  EXPECT_GT(content(*open_clip, "<|endoftext|>").size(), 1U);
  EXPECT_GT(content(*open_clip, "<END_OF_TEXT>").size(), 1U);
  EXPECT_EQ(content(*open_clip, "it'ſ").size(), content(*open_clip, "it").size() + 3) << "' and two bytes are a word";
  EXPECT_EQ(content(*open_clip, "a\u0345b"), content(*open_clip, "a b"));
  EXPECT_EQ(open_clip->pad_id(), 0);
}

// tokenizer.json of CLIP lists the special tokens itself.
TEST(OpenTokenizer, ReadsTokenizerJsonOfClip) {
  const fs::path files = testing::fixture("text/clip");
  Json model{
      {"type", "BPE"}, {"end_of_word_suffix", "</w>"}, {"unk_token", "<|endoftext|>"}, {"merges", Json::array()}};
  model["vocab"] = Json::parse(read_text_file(files / "vocab.json"));
  std::istringstream lines(read_text_file(files / "merges.txt"));
  std::string line;
  for (std::getline(lines, line); std::getline(lines, line);) model["merges"].push_back(line);
  const auto id = [&](const char* token) { return model["vocab"][token]; };
  const Json added{{{"content", "<|startoftext|>"}, {"id", id("<|startoftext|>")}, {"normalized", true}},
                   {{"content", "<|endoftext|>"}, {"id", id("<|endoftext|>")}, {"normalized", false}}};
  const Json json{{"model", model}, {"added_tokens", added}};
  const auto tokenizer = open_tokenizer(folder_with("tokenizer.json", json.dump())), same = open_tokenizer(files);
  for (const std::string text : {"a photo of a cat", "the <|endoftext|> and <|startoftext|>!"}) {
    EXPECT_EQ(tokenizer->encode(text, 77), same->encode(text, 77)) << text;
  }
}

// The symbol of a byte that the vocabulary lacks is the unknown token, else the end of the text.
TEST(OpenTokenizer, ASymbolThatClipsVocabularyLacksIsUnknown) {
  Json model{{"type", "BPE"}, {"end_of_word_suffix", "</w>"}, {"merges", Json::array()}};
  model["vocab"] = {{"a", 0}, {"a</w>", 1}, {"<unk>", 2}, {"<|startoftext|>", 3}, {"<|endoftext|>", 4}};
  const auto encoded = [&] {
    return open_tokenizer(folder_with("tokenizer.json", Json{{"model", model}}.dump()))->encode("ab ba", 77);
  };
  EXPECT_EQ(encoded(), (std::vector<int64_t>{3, 0, 4, 4, 1, 4}));
  model["unk_token"] = "<unk>";
  EXPECT_EQ(encoded(), (std::vector<int64_t>{3, 0, 2, 2, 1, 4}));
}

TEST(AddedTokens, TheLongestAtAPlaceIsTaken) {
  const AddedTokens tokens({{.content = "<a>", .id = 1}, {.content = "<a><b>", .id = 2}, {.content = "<", .id = 3}},
                           false);
  std::vector<int64_t> ids;
  for (const TextPart& part : tokens.split("x<a><b><a>y<")) ids.push_back(part.id.value_or(0));
  EXPECT_EQ(ids, (std::vector<int64_t>{0, 2, 1, 0, 3}));
}

TEST(OpenTokenizer, NamesWhatAFolderLacks) {
  const fs::path empty = testing::scratch_folder();
  const std::string message = testing::error_of([&] { open_tokenizer(empty); });
  EXPECT_TRUE(testing::contains(message, "tokenizer.json, vocab.json")) << message;
}

TEST(OpenTokenizer, RefusesFilesOfOtherKinds) {
  const auto message_of = [](const std::string& name, const std::string& content) {
    return testing::error_of([&] { open_tokenizer(folder_with(name, content)); });
  };
  EXPECT_TRUE(testing::contains(message_of("tokenizer.json", "{"), "expected JSON"));
  EXPECT_TRUE(testing::contains(message_of("tokenizer.json", R"({"model": {"type": "WordPiece"}})"), "BPE or Unigram"));
  EXPECT_TRUE(testing::contains(
      message_of("tokenizer.json", R"({"model": {"type": "BPE", "vocab": {"a": 0}, "merges": []}})"), "another BPE"));
  const std::string bad_merge = R"({"model": {"type": "BPE", "vocab": {"a": 0}, "merges": ["a b"],
                                    "end_of_word_suffix": "</w>"}})";
  EXPECT_TRUE(testing::contains(message_of("tokenizer.json", bad_merge), "merges of tokens in the vocabulary"));
  EXPECT_TRUE(testing::contains(message_of("spiece.model", "no model"), "a SentencePiece model"));
}

// A folder with the pieces in both forms, as Google's of SigLIP: the ids are those of the SentencePiece model.
TEST(OpenTokenizer, ReadsTheSentencePieceModelBesideAUnigramTokenizerJson) {
  const fs::path folder = testing::scratch_folder();
  fs::copy(testing::fixture("text/siglip"), folder, fs::copy_options::recursive);
  fs::copy(testing::fixture("text/unigram/tokenizer.json"), folder);
  expect_ids_of_cases(folder);
}

// The model is that of a folder; a file that is named itself is read.
TEST(OpenTokenizer, ReadsAUnigramTokenizerJsonThatIsNamedBesideAModel) {
  const fs::path folder = testing::scratch_folder();
  fs::copy(testing::fixture("text/unigram/tokenizer.json"), folder);
  const auto alone = open_tokenizer(folder / "tokenizer.json");
  fs::copy(testing::fixture("text/siglip/spiece.model"), folder);
  const auto beside = open_tokenizer(folder / "tokenizer.json");
  EXPECT_EQ(beside->vocab_size(), alone->vocab_size());
  EXPECT_EQ(beside->encode("a photo of two dogs", 64), alone->encode("a photo of two dogs", 64));
  EXPECT_NE(open_tokenizer(folder)->encode("a photo of two dogs", 64), alone->encode("a photo of two dogs", 64));
}

TEST(OpenTokenizer, ReadsABpeTokenizerJsonBesideASentencePieceModel) {
  const fs::path folder = testing::scratch_folder();
  fs::copy(testing::fixture("text/gemma"), folder, fs::copy_options::recursive);
  fs::copy(testing::fixture("text/siglip/spiece.model"), folder);
  expect_ids_of_cases(folder);
}

// Gemma's pieces are not those of its tokenizer.json after SigLIP's steps.
TEST(OpenTokenizer, RefusesGemmasSentencePieceModel) {
  const fs::path model = testing::fixture("text/gemma_spm/tokenizer.model");
  const std::string message = testing::error_of([&] { open_tokenizer(model); });
  EXPECT_TRUE(testing::contains(message, "got Gemma's; SigLIP 2's tokenizer is its tokenizer.json")) << message;
}

// Ids of the tokens would disagree with the size of the vocabulary.
TEST(OpenTokenizer, RefusesAnAddedTokenWithAnotherIdThanInTheVocabulary) {
  const std::string content =
      R"({"model": {"type": "BPE", "vocab": {"<|startoftext|>": 0, "<|endoftext|>": 1}, "merges": [],
                    "end_of_word_suffix": "</w>"},
          "added_tokens": [{"id": 9, "content": "<|endoftext|>"}]})";
  const std::string message = testing::error_of([&] { open_tokenizer(folder_with("tokenizer.json", content)); });
  EXPECT_TRUE(testing::contains(message, "expected one id for each token, got 1 and 9 for \"<|endoftext|>\""))
      << message;
}

Json unigram_json() { return Json::parse(read_text_file(testing::fixture("text/unigram/tokenizer.json"))); }

std::unique_ptr<Tokenizer> open_json(const Json& json) {
  return open_tokenizer(folder_with("tokenizer.json", json.dump()));
}

TEST(UnigramTokenizer, PadsWithTheTokenOfItsConfiguration) {
  EXPECT_EQ(open_json(unigram_json())->pad_id(), 1) << "without one, the end of the text";
  for (const char* config : {R"({"pad_token": "<pad>"})", R"({"pad_token": {"content": "<pad>"}})"}) {
    const fs::path folder = folder_with("tokenizer.json", unigram_json().dump());
    std::ofstream(folder / "tokenizer_config.json") << config;
    EXPECT_EQ(open_tokenizer(folder)->pad_id(), 0) << config;
  }
}

// A word of one piece, and of one that no piece has: the bytes of UTF-8 instead of the unknown token.
TEST(UnigramTokenizer, FallsBackToBytes) {
  constexpr std::string_view kDigits = "0123456789ABCDEF";
  Json json = unigram_json();
  Json& model = json["model"];
  model["vocab"] = Json::array();
  const auto add = [&](const std::string& piece, int score) { model["vocab"].push_back(Json::array({piece, score})); };
  add("<pad>", 0);
  add("</s>", 0);
  add("▁cat", -1);
  model["byte_fallback"] = true;
  model["unk_id"] = 0;
  for (size_t byte = 0; byte < 256; ++byte) add(str("<0x", kDigits[byte / 16], kDigits[byte % 16], ">"), -20);
  json["added_tokens"] = Json::array();
  const auto tokenizer = open_json(json);
  EXPECT_EQ(tokenizer->encode("cat", 64), (std::vector<int64_t>{2, 1}));
  EXPECT_EQ(tokenizer->encode("é", 64), (std::vector<int64_t>{3 + 0xe2, 3 + 0x96, 3 + 0x81, 3 + 0xc3, 3 + 0xa9, 1}));
}

TEST(UnigramTokenizer, AppliesItsNormalizersInTheirOrder) {
  Json json = unigram_json();
  json["normalizer"] = {{"type", "Sequence"},
                        {"normalizers",
                         {{{"type", "Lowercase"}},
                          {{"type", "Replace"}, {"pattern", {{"String", "x"}}}, {"content", " cat "}},
                          {{"type", "Replace"}, {"pattern", {{"Regex", " {2,}"}}}, {"content", " "}},
                          {{"type", "Strip"}, {"strip_left", true}, {"strip_right", true}}}}};
  const auto tokenizer = open_json(json), plain = open_json(unigram_json());
  EXPECT_EQ(tokenizer->encode("A X", 64), plain->encode("a cat", 64));
}

TEST(UnigramTokenizer, RefusesWhatItDoesNotKnow) {
  const auto message_of = [](const char* pointer, const Json& value) {
    Json json = unigram_json();
    json[Json::json_pointer(pointer)] = value;
    return testing::error_of([&] { open_json(json); });
  };
  const std::pair<const char*, Json> cases[] = {
      {"/model/vocab", Json::array()},
      {"/model/vocab/0", {"a"}},
      {"/model/unk_id", 1000},
      {"/normalizer", {{"type", "Nmt"}}},
      {"/normalizer/precompiled_charsmap", "AAA="},
      {"/normalizer", {{"type", "Replace"}, {"pattern", {{"Regex", "a+"}}}, {"content", ""}}},
      {"/pre_tokenizer", {{"type", "ByteLevel"}}},
      {"/post_processor", {{"type", "ByteLevel"}}},
      {"/post_processor/special_tokens/<~1s>/ids/0", 1'000'000}};
  for (const auto& [pointer, value] : cases) {
    const std::string message = message_of(pointer, value);
    EXPECT_TRUE(testing::contains(message, "tokenizer.json")) << pointer << ": " << message;
  }
}

TEST(SiglipTokenizer, NamesTheMissingModule) {
  const std::string model = testing::fixture("text/siglip/spiece.model"), empty = testing::scratch_folder();
  const testing::ProgramResult result =
      testing::run_program({"embed", "-m", testing::fixture("models/hf_clip"), "--text", "a cat", "--tokenizer", model,
                            "-o", empty + "/rows.npy"},
                           "", {{"VITRAIL_MODULES", empty}});
  EXPECT_TRUE(testing::contains(result.err, "the module vitrail_sentencepiece.so in " + empty)) << result.err;
  EXPECT_TRUE(testing::contains(result.err, "VITRAIL_SENTENCEPIECE is ON")) << result.err;
}

TEST(OpenTokenizer, RefusesAVocabularyWithoutSpecialTokens) {
  const std::string content =
      R"({"model": {"type": "BPE", "vocab": {"a": 0}, "merges": [], "end_of_word_suffix": "</w>"}})";
  const std::string message = testing::error_of([&] { open_tokenizer(folder_with("tokenizer.json", content)); });
  EXPECT_TRUE(testing::contains(message, "<|startoftext|>")) << message;
}

// 40 bytes of a text are shown, and the whole of a character that begins among them.
TEST(Tokenizer, AWarningShowsTheBeginningOfALongText) {
  const auto tokenizer = open_tokenizer(testing::fixture("text/gemma"));
  const std::string forty(40, 'b');
  const std::string longest = std::string(39, 'b') + "é";
  const std::pair<std::string, std::string> cases[] = {{forty, "\"" + forty + "\""},
                                                       {forty + "c", "\"" + forty + "…\""},
                                                       {longest, "\"" + longest + "\""},
                                                       {longest + "c", "\"" + longest + "…\""}};
  for (const auto& [text, shown] : cases) {
    const testing::Warnings warnings;
    const size_t ids = tokenizer->encode(text, 1000).size();
    EXPECT_TRUE(warnings.messages.empty());
    EXPECT_EQ(tokenizer->encode(text, static_cast<int64_t>(ids)).size(), ids);
    EXPECT_TRUE(warnings.messages.empty()) << "it fits";
    EXPECT_EQ(tokenizer->encode(text, 3).size(), 3u);
    ASSERT_EQ(warnings.messages.size(), 1u);
    EXPECT_EQ(warnings.messages[0], str(shown, ": cut to the model's context of 3 tokens, from ", ids));
  }
  EXPECT_ERROR(testing::error_of([&] { tokenizer->encode("a", 0); }), "text", "0");
  EXPECT_ERROR(testing::error_of([&] { tokenizer->encode(std::string(79, 'a') + "\xff" + "b", 9); }), "text",
               "\"" + std::string(79, 'a') + "\\xFF\"");
}

TEST(Tokenizer, HasTheSpecialTokensOfItsModel) {
  struct Case {
    const char* name;
    int64_t eos, pad, size;
    bool pads;
  };
  for (const auto& [name, eos, pad, size, pads] : {Case{"clip", 757, 757, 758, false},
                                                   {"gemma", 1, 0, 511, true},
                                                   {"siglip", 1, 1, 206, true},
                                                   {"unigram", 1, 1, 199, true},
                                                   {"xlm", 2, 2, 201, true}}) {
    const auto tokenizer = open_tokenizer(testing::fixture(str("text/", name)));
    EXPECT_EQ(tokenizer->eos_id(), eos) << name;
    EXPECT_EQ(tokenizer->pad_id(), pad) << name;
    EXPECT_EQ(tokenizer->vocab_size(), size) << name;
    EXPECT_EQ(tokenizer->pads_to_context(), pads) << name;
  }
}

// The first file of the list is read; a damaged one shows which it was.
TEST(OpenTokenizer, ReadsTheFirstFileOfItsList) {
  const fs::path folder = testing::scratch_folder();
  const std::vector<std::string> names(std::begin(kTokenizerFiles), std::end(kTokenizerFiles));
  EXPECT_EQ(names, (std::vector<std::string>{"tokenizer.json", "vocab.json", "spiece.model", "sentencepiece.model",
                                             "bpe_simple_vocab_16e6.txt", "bpe_simple_vocab_16e6.txt.gz"}));
  EXPECT_EQ(std::vector<std::string>(std::begin(kTokenizerCompanions), std::end(kTokenizerCompanions)),
            (std::vector<std::string>{"merges.txt", "added_tokens.json", "special_tokens_map.json",
                                      "tokenizer_config.json"}));
  for (const std::string& name : names) std::ofstream(folder / name) << "{";
  const std::string expected[] = {"JSON",
                                  "JSON",
                                  "a SentencePiece model",
                                  "a SentencePiece model",
                                  "two tokens in each merge",
                                  "two tokens in each merge"};
  for (size_t i = 0; i < names.size(); ++i) {
    const std::string begin = (folder / names[i]).string() + ": expected " + expected[i] + ", got ";
    for (const fs::path& path : {folder, folder / names[i]}) {
      const std::string message = testing::error_of([&] { open_tokenizer(path); });
      EXPECT_EQ(message.substr(0, begin.size()), begin);
    }
    fs::remove(folder / names[i]);
  }
  EXPECT_ERROR(testing::error_of([&] { open_tokenizer(folder); }), folder.string(), "none of them");
  EXPECT_ERROR(testing::error_of([&] { open_tokenizer(folder / "x.bin"); }), (folder / "x.bin").string(), "another");
}

TEST(OpenTokenizer, NamesTheFileOfEachRefusal) {
  const fs::path folder =
      folder_with("tokenizer.json", R"({"model": {"type": "BPE", "vocab": {"<|startoftext|>": 0}, "merges": [],
                                      "end_of_word_suffix": "</w>"}})");
  const std::string file = (folder / "tokenizer.json").string();
  const auto refusal = [&](const std::string& model) {
    std::ofstream(folder / "tokenizer.json") << R"({"model": {"type": "BPE", "merges": [], )" << model << "}}";
    return testing::error_of([&] { open_tokenizer(folder); });
  };
  EXPECT_ERROR(refusal(R"("end_of_word_suffix": "</w>", "vocab": {"<|startoftext|>": 0})"), file,
               "a vocabulary without it");
  EXPECT_ERROR(refusal(R"("end_of_word_suffix": "</w>", "vocab": {"<|endoftext|>": 0})"), file,
               "a vocabulary without it");
  EXPECT_ERROR(refusal(R"("end_of_word_suffix": "</w>", "unk_token": "<u>",
                       "vocab": {"<|endoftext|>": 0, "<|startoftext|>": 1})"),
               file, "a vocabulary without it");
  EXPECT_ERROR(refusal(R"("end_of_word_suffix": "</v>", "vocab": {"<|endoftext|>": 0, "<|startoftext|>": 1})"), file,
               "another BPE");
  EXPECT_ERROR(refusal(R"("byte_fallback": true, "vocab": {"<pad>": 0})"), file, "a vocabulary without it");
  EXPECT_ERROR(refusal(R"("byte_fallback": true, "vocab": {"<eos>": 0})"), file, "a vocabulary without it");
  EXPECT_ERROR(refusal(R"("byte_fallback": true, "vocab": {"<eos>": 0, "<pad>": 1, "<0x00>": 2})"), file,
               "a vocabulary without it");
}

Json gemma_json() { return Json::parse(read_text_file(testing::fixture("text/gemma/tokenizer.json"))); }

TEST(GemmaTokenizer, TokensOfATextAreThemselves) {
  const std::vector<int64_t> want{274, 4, 275, 1};
  EXPECT_EQ(open_tokenizer(testing::fixture("text/gemma"))->encode("A<mask>B", 64), want);
  EXPECT_NE(open_tokenizer(testing::fixture("text/gemma"))->encode("A<MASK>B", 64), want);
  Json json = gemma_json();
  json["added_tokens"][4]["normalized"] = true;  // it is sought after the text is in lower case
  EXPECT_EQ(open_json(json)->encode("A<MASK>B", 64), want);
}

TEST(GemmaTokenizer, CharactersWithoutATokenAreTheirBytes) {
  const Json json = gemma_json();
  const auto id = [&](const char* token) { return json["model"]["vocab"][token].get<int64_t>(); };
  ASSERT_FALSE(json["model"]["vocab"].contains("\u00ff"));
  EXPECT_EQ(open_json(json)->encode("\u00ffA", 64), (std::vector<int64_t>{id("<0xC3>"), id("<0xBF>"), id("a"), 1}));
}

// The name of a piece in the fixture's model is replaced in its place.
TEST(SiglipTokenizer, RefusesAModelWithoutAnEnd) {
  const fs::path folder = testing::scratch_folder();
  std::string model;
  for (const std::byte byte : read_file(testing::fixture("text/siglip/spiece.model"), 1'000'000))
    model += static_cast<char>(byte);
  model.replace(model.find("</s>"), 4, "</t>");
  std::ofstream(folder / "spiece.model", std::ios::binary) << model;
  EXPECT_ERROR(testing::error_of([&] { open_tokenizer(folder); }), (folder / "spiece.model").string(),
               "one without it");
}

TEST(SiglipTokenizer, TheSymbolOfASpaceIsASpace) {
  const auto tokenizer = open_tokenizer(testing::fixture("text/siglip"));
  EXPECT_EQ(tokenizer->encode("a▁photo▁of▁a▁cat", 64), tokenizer->encode("a photo of a cat", 64));
  EXPECT_EQ(tokenizer->encode("A, PHOTO; (of) a-cat!", 64), tokenizer->encode("a photo of acat", 64));
}

}  // namespace
}  // namespace vitrail::text
