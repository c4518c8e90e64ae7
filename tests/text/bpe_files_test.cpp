// SPDX-License-Identifier: Apache-2.0
#include "vitrail/text/bpe_files_internal.h"

#include <gtest/gtest.h>

#include <zlib.h>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <random>
#include <set>

#include "tests/support/errors.h"
#include "tests/support/messages.h"
#include "tests/support/paths.h"
#include "vitrail/text/tokenizer.h"
#include "vitrail/text/tokenizer_json_internal.h"
#include "vitrail/text/unicode_internal.h"

namespace vitrail::text {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::json;
using testing::contains;
using testing::error_of;

// GPT-2's bytes_to_unicode(): printable bytes stand for themselves, the others for characters from 256 on.
TEST(ByteSymbols, AreThoseOfGpt2) {
  const std::vector<std::string>& symbols = byte_symbols();
  ASSERT_EQ(symbols.size(), 256u);
  char32_t next = 256;
  for (char32_t byte = 0; byte < 256; ++byte) {
    const bool itself = (byte >= 0x21 && byte <= 0x7e) || (byte >= 0xa1 && byte <= 0xff && byte != 0xad);
    EXPECT_EQ(code_points(symbols[byte]), std::u32string(1, itself ? byte : next++)) << static_cast<uint32_t>(byte);
  }
  EXPECT_EQ(next, 256u + 68u);
  EXPECT_EQ(symbols[' '], "Ġ");
}

// A folder with vocab.json and merges.txt of these lines.
fs::path files_with(const std::string& merges, const std::string& line_end = "\n") {
  const fs::path folder = testing::scratch_folder();
  Json vocab = Json::object();
  for (const char* token : {"a", "b", "a</w>", "b</w>", "ab</w>", "aab</w>", "<|startoftext|>", "<|endoftext|>"})
    vocab[token] = vocab.size();
  std::ofstream(folder / "vocab.json") << vocab.dump();
  std::ofstream out(folder / "merges.txt", std::ios::binary);
  out << "#version: 0.2" << line_end << merges;
  return folder;
}

TEST(VocabAndMerges, LinesMayEndAsOnWindows) {
  for (const std::string end : {"\n", "\r\n"}) {
    const auto tokenizer = open_tokenizer(files_with("a b</w>" + end + end + "a ab</w>" + end, end));
    EXPECT_EQ(tokenizer->encode("ab", 77), (std::vector<int64_t>{6, 4, 7})) << end.size();
    EXPECT_EQ(tokenizer->encode("aab b", 77), (std::vector<int64_t>{6, 5, 3, 7}));
    EXPECT_EQ(tokenizer->vocab_size(), 8);
    EXPECT_FALSE(tokenizer->pads_to_context());
  }
}

TEST(VocabAndMerges, AMergeIsTwoTokens) {
  for (const std::string line : {"a", "a ", " b</w>", "a b a", " "}) {
    const fs::path folder = files_with("a b</w>\n" + line + "\n");
    EXPECT_TRUE(contains(error_of([&] { open_tokenizer(folder); }), "two tokens in each merge, got \"" + line + "\""))
        << line;
  }
}

// transformers' files of a tokenizer without tokenizer.json.
TEST(VocabAndMerges, AddedTokensAreBesideThem) {
  const fs::path decoder = files_with("a b</w>\n"), older = files_with("a b</w>\n");
  const Json token{{"content", "<x>"}, {"normalized", false}, {"lstrip", false}, {"special", true}};
  Json normalized = token;
  normalized["content"] = "<B>";
  normalized["normalized"] = true;
  std::ofstream(decoder / "tokenizer_config.json") << Json{{"added_tokens_decoder", {{"8", token}, {"9", normalized}}}};
  std::ofstream(older / "added_tokens.json") << R"({"<x>": 8, "<B>": 9})";
  std::ofstream(older / "special_tokens_map.json") << R"({"additional_special_tokens": ["<x>"]})";
  for (const fs::path& folder : {decoder, older}) {
    const auto tokenizer = open_tokenizer(folder);
    EXPECT_EQ(tokenizer->vocab_size(), 10);
    EXPECT_EQ(tokenizer->encode("ab<x>b <B><b>", 77), (std::vector<int64_t>{6, 4, 8, 3, 9, 9, 7})) << folder;
    EXPECT_EQ(tokenizer->encode("<|endoftext|>", 77), (std::vector<int64_t>{6, 7, 7})) << "listed nowhere";
  }
  std::ofstream(older / "added_tokens.json") << R"({"a": 8})";
  EXPECT_TRUE(contains(error_of([&] { open_tokenizer(older); }), "one id for each token"));
  std::ofstream(decoder / "tokenizer_config.json") << R"({"added_tokens_decoder": {"x": {"content": "<x>"}}})";
  EXPECT_TRUE(contains(error_of([&] { open_tokenizer(decoder); }), "content and id of each token"));
}

TEST(SimpleVocab, HasAtMostTheMergesOfOpenAi) {
  const fs::path folder = testing::scratch_folder();
  {
    std::ofstream out(folder / "bpe_simple_vocab_16e6.txt");
    out << "\"bpe_simple_vocab_16e6.txt#version: 0.2\n";
    std::mt19937 random(1);
    std::set<std::string> seen;
    while (seen.size() < 49152 - 256 - 2 + 5) {  // pairs of what was merged before
      std::string left(1 + random() % 4, 'a'), right(1 + random() % 4, 'a');
      for (char& c : left) c = static_cast<char>('a' + random() % 26);
      for (char& c : right) c = static_cast<char>('a' + random() % 26);
      if (seen.insert(left + right).second) out << left << " " << right << "\n";
    }
  }
  const BpeFile file = read_simple_vocab(folder / "bpe_simple_vocab_16e6.txt");
  EXPECT_EQ(file.merges.size(), 48894u);
  EXPECT_EQ(file.vocabulary.at("!"), 0);
  EXPECT_EQ(file.vocabulary.at(byte_symbols()[0]), 188) << "after the printable bytes";
  EXPECT_EQ(file.vocabulary.at("!</w>"), 256);
  EXPECT_EQ(file.vocabulary.at(file.merges[0].first + file.merges[0].second), 512);
  EXPECT_EQ(file.end_of_word_suffix, "</w>");
  ASSERT_EQ(file.added.size(), 2u);
  EXPECT_EQ(file.added[0].content, "<|startoftext|>");
}

TEST(TokenizerJson, OfBpeHasItsParts) {
  const Json json = Json::parse(R"({"model": {"vocab": {"a": 0, "b": 1, "ab": 2}, "merges": [["a", "b"], "a b"],
      "byte_fallback": true, "unk_token": "a"}, "added_tokens": [{"content": "<x>", "id": 3}]})");
  const BpeFile file = read_tokenizer_json(json, "where");
  EXPECT_EQ(file.merges, (Merges{{"a", "b"}, {"a", "b"}}));
  EXPECT_EQ(file.vocabulary.at("<x>"), 3);
  EXPECT_TRUE(file.byte_fallback);
  EXPECT_EQ(file.unknown_token, "a");
  EXPECT_EQ(file.end_of_word_suffix, "");
  const auto refusal = [&](const char* pointer, const Json& value) {
    Json changed = json;
    changed[Json::json_pointer(pointer)] = value;
    return error_of([&] { read_tokenizer_json(changed, "where"); });
  };
  EXPECT_TRUE(contains(refusal("/model/vocab", Json::array()), "an object of tokens with their ids"));
  EXPECT_TRUE(contains(refusal("/model/vocab/a", "0"), "an integer id for each token"));
  EXPECT_TRUE(contains(refusal("/model/merges/0", {"a"}), "\"left right\" or [left, right]"));
  EXPECT_TRUE(contains(refusal("/model/merges/0", {"a", 1}), "\"left right\" or [left, right]"));
  EXPECT_TRUE(contains(refusal("/model/merges/1", "a"), "two tokens in each merge"));
}

TEST(TokenizerJson, DeepNestingIsAnError) {
  for (const int depth : {20, 21}) {
    const fs::path file = testing::scratch_folder() / "tokenizer.json";
    std::ofstream(file) << "{\"x\": " << std::string(depth - 1, '[') << std::string(depth - 1, ']') << "}";
    const std::string message = error_of([&] { open_tokenizer(file); });
    EXPECT_EQ(contains(message, "at most 20 levels of nesting"), depth == 21) << message;
  }
}

TEST(VocabAndMerges, SkipsTheVersionAndEmptyLinesAlone) {
  const fs::path folder = testing::scratch_folder();
  std::ofstream(folder / "vocab.json") << R"({"#": 0, "<|startoftext|>": 7, "<|endoftext|>": 5})";
  std::ofstream(folder / "merges.txt") << "#version: 0.2\n# #\n\n#v a\nb c";
  const BpeFile file = read_vocab_and_merges(folder / "vocab.json", folder / "merges.txt");
  EXPECT_EQ(file.merges, (Merges{{"#", "#"}, {"#v", "a"}, {"b", "c"}}));
  EXPECT_EQ(file.vocabulary, (Vocabulary{{"#", 0}, {"<|startoftext|>", 7}, {"<|endoftext|>", 5}}));
  EXPECT_EQ(file.end_of_word_suffix, "</w>");
  EXPECT_FALSE(file.byte_fallback);
  EXPECT_EQ(file.unknown_token, "");
  ASSERT_EQ(file.added.size(), 2u);
  EXPECT_EQ(file.added[0].content, "<|startoftext|>");
  EXPECT_EQ(file.added[0].id, 7);
  EXPECT_EQ(file.added[1].content, "<|endoftext|>");
  EXPECT_EQ(file.added[1].id, 5);
  EXPECT_FALSE(file.added[0].normalized || file.added[0].lstrip);
}

TEST(VocabAndMerges, RefusalsNameTheirFile) {
  const fs::path folder = files_with("a\n");
  const auto refusal = [&] {
    return error_of([&] { read_vocab_and_merges(folder / "vocab.json", folder / "merges.txt"); });
  };
  EXPECT_ERROR(refusal(), (folder / "merges.txt").string(), "\"a\"");
  std::ofstream(folder / "vocab.json") << R"({"a": 1.5})";
  EXPECT_ERROR(refusal(), (folder / "vocab.json").string(), "\"a\"");
  std::ofstream(folder / "vocab.json") << "[]";
  EXPECT_ERROR(refusal(), (folder / "vocab.json").string(), "array");
}

// The content of OpenAI's file: with gzip and without, with the line of its name and without.
TEST(SimpleVocab, MayBeCompressedAndWithoutItsFirstLine) {
  const fs::path folder = testing::scratch_folder();
  const std::string merges = "t h\nth e</w>\n";
  for (const std::string first : {"", "\"bpe_simple_vocab_16e6.txt#version: 0.2\n"}) {
    std::ofstream(folder / "bpe_simple_vocab_16e6.txt") << first << merges;
    gzFile zipped = ::gzopen((folder / "bpe_simple_vocab_16e6.txt.gz").c_str(), "wb");
    ASSERT_NE(zipped, nullptr);
    ::gzputs(zipped, (first + merges).c_str());
    ::gzclose(zipped);
    for (const char* name : {"bpe_simple_vocab_16e6.txt", "bpe_simple_vocab_16e6.txt.gz"}) {
      const BpeFile file = read_simple_vocab(folder / name);
      EXPECT_EQ(file.merges, (Merges{{"t", "h"}, {"th", "e</w>"}})) << name << first;
      EXPECT_EQ(file.vocabulary.at("~"), 93);
      EXPECT_EQ(file.vocabulary.at("¡"), 94);
      EXPECT_EQ(file.vocabulary.at("ÿ"), 187);
      EXPECT_EQ(file.vocabulary.at("Ġ"), 188 + 32);
      EXPECT_EQ(file.vocabulary.at("Ġ</w>"), 256 + 188 + 32);
      EXPECT_EQ(file.vocabulary.at("th"), 512);
      EXPECT_EQ(file.vocabulary.at("the</w>"), 513);
      EXPECT_EQ(file.vocabulary.at("<|startoftext|>"), 514);
      EXPECT_EQ(file.vocabulary.at("<|endoftext|>"), 515);
      EXPECT_EQ(file.vocabulary.size(), 516u);
      ASSERT_EQ(file.added.size(), 2u);
      EXPECT_EQ(file.added[1].content, "<|endoftext|>");
      EXPECT_EQ(file.added[1].id, 515);
      EXPECT_FALSE(file.added[1].normalized);
    }
  }
  std::ofstream(folder / "bpe_simple_vocab_16e6.txt") << "t h e\n";
  EXPECT_ERROR(error_of([&] { read_simple_vocab(folder / "bpe_simple_vocab_16e6.txt"); }),
               (folder / "bpe_simple_vocab_16e6.txt").string(), "\"t h e\"");
}

TEST(TokenizerJson, OfBpeHasDefaultsAndNamesItsParts) {
  const Json json = Json::parse(R"({"model": {"vocab": {"a": 0, "b": 1}, "merges": [], "end_of_word_suffix": "</w>"},
                                    "added_tokens": [{"content": "b", "id": 1}]})");
  const BpeFile file = read_tokenizer_json(json, "where");
  EXPECT_FALSE(file.byte_fallback);
  EXPECT_EQ(file.end_of_word_suffix, "</w>");
  EXPECT_EQ(file.unknown_token, "");
  EXPECT_EQ(file.vocabulary, (Vocabulary{{"a", 0}, {"b", 1}}));
  ASSERT_EQ(file.added.size(), 1u);
  EXPECT_EQ(file.added[0].id, 1);
  const auto refusal = [&](const char* pointer, const Json& value) {
    Json changed = json;
    changed[Json::json_pointer(pointer)] = value;
    return error_of([&] { read_tokenizer_json(changed, "where"); });
  };
  const std::string pairs = "\"left right\" or [left, right]";
  EXPECT_ERROR(refusal("/model/type", "WordPiece"), "where: model", "\"WordPiece\"");
  EXPECT_ERROR(refusal("/model/vocab", 1), "where: model.vocab", "number");
  EXPECT_EQ(refusal("/model/merges", Json::array({1})), "where: model.merges: expected " + pairs + ", got number");
  EXPECT_EQ(refusal("/model/merges", Json::array({Json::array({"a", "b", "c"})})),
            "where: model.merges: expected " + pairs + ", got array");
  EXPECT_EQ(refusal("/model/merges", Json::array({Json::array({1, "b"})})),
            "where: model.merges: expected " + pairs + ", got array");
  EXPECT_ERROR(refusal("/added_tokens/0/id", 2), "where", "1 and 2 for \"b\"");
  EXPECT_ERROR(refusal("/added_tokens/0/id", "2"), "where: added_tokens", "another");
  Json without_list = json;
  without_list["model"] = {{"type", "BPE"}, {"vocab", Json::object()}, {"merges", "a b"}};
  EXPECT_ERROR(error_of([&] { read_tokenizer_json(without_list, "where"); }), "where: model.merges", "string");
}

TEST(TokenizerJson, HasMembersOrNull) {
  const Json json = Json::parse(R"({"a": 1, "b": null, "c": "text"})");
  EXPECT_EQ(member(json, "a"), Json(1));
  EXPECT_TRUE(member(json, "b").is_null());
  EXPECT_TRUE(member(json, "d").is_null());
  EXPECT_TRUE(member(Json::array({1}), "a").is_null());
  EXPECT_TRUE(member(Json(), "a").is_null());
  EXPECT_EQ(text_or(json["c"], "default"), "text");
  EXPECT_EQ(text_or(json["a"], "default"), "default");
}

TEST(TokenizerJson, NamesTheTypeOfItsModel) {
  EXPECT_EQ(model_type_of(Json::parse(R"({"model": {"type": "Unigram", "merges": []}})")), "Unigram");
  EXPECT_EQ(model_type_of(Json::parse(R"({"model": {"merges": []}})")), "BPE");
  EXPECT_EQ(model_type_of(Json::parse(R"({"model": {"merges": "a b"}})")), "another");
  EXPECT_EQ(model_type_of(Json::parse(R"({"model": {}})")), "another");
  EXPECT_EQ(model_type_of(Json::parse("[]")), "another");
}

}  // namespace
}  // namespace vitrail::text
