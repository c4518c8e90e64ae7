// SPDX-License-Identifier: Apache-2.0
#pragma once
// The files of byte-pair encodings.
#include <filesystem>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "vitrail/text/added_tokens_internal.h"
#include "vitrail/text/bpe_internal.h"

namespace vitrail::text {

// What a tokenizer.json describes of a byte-pair encoding.
struct BpeFile {
  Vocabulary vocabulary{};
  Merges merges{};
  std::vector<AddedToken> added{};
  std::string end_of_word_suffix{};  // "</w>" for CLIP
  bool byte_fallback = false;        // characters without a token become tokens of their bytes (Gemma)
  std::string unknown_token{};
};

// All throw Error naming the file for one that is malformed.
// tokenizer.json of Hugging Face's tokenizers; Error for a model other than BPE.
BpeFile read_tokenizer_json(const nlohmann::json& json, const std::string& where);
// vocab.json {token: id} and merges.txt, a merge per line, with the added tokens of the files beside them:
// "added_tokens_decoder" of tokenizer_config.json, else added_tokens.json {token: id}.
BpeFile read_vocab_and_merges(const std::filesystem::path& vocab, const std::filesystem::path& merges);
// OpenAI's and OpenCLIP's bpe_simple_vocab_16e6.txt, also compressed by gzip: merges alone.  The first 48,894
// are used.
BpeFile read_simple_vocab(const std::filesystem::path& file);

// The printable characters that stand for the bytes 0 to 255 in the vocabulary of a byte-level encoding (GPT-2).
const std::vector<std::string>& byte_symbols();

}  // namespace vitrail::text
