// SPDX-License-Identifier: Apache-2.0
#pragma once
// A tokenizer.json of type Unigram (T5's and XLM-R's, and those of OpenCLIP's SigLIP).
#include <filesystem>
#include <functional>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "vitrail/text/added_tokens_internal.h"

namespace vitrail::text {

enum class PrependScheme { always, first, never };

struct UnigramFile {
  std::vector<std::pair<std::string, double>> pieces{};  // with their scores (log probabilities); the index is the id
  std::optional<int64_t> unknown_id{};
  bool byte_fallback = false;  // characters without a piece become the pieces of their bytes
  std::vector<AddedToken> added{};
  std::vector<std::function<std::string(const std::string&)>> normalizers{};  // in this order
  bool split_at_white_space = false;                                          // white space is no part of any piece
  bool split_at_symbol = true;                                                // "▁" begins a word
  PrependScheme prepend = PrependScheme::always;                              // "▁" is put in front of these words
  std::optional<int64_t> bos{};
  int64_t eos = 0, pad = 0;
};

// The content of a tokenizer.json.  Throws Error naming the file for a malformed one and for steps that are not
// supported.  The padding token is in tokenizer_config.json beside it; without one it is the end-of-text token, as
// SigLIP's.
UnigramFile read_unigram_json(const nlohmann::json& json, const std::filesystem::path& tokenizer_json);

}  // namespace vitrail::text
