// SPDX-License-Identifier: Apache-2.0
#pragma once
// What the readers of tokenizer.json (Hugging Face's tokenizers) share.
#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "vitrail/text/added_tokens_internal.h"

namespace vitrail::text {

constexpr size_t kMaxTokenizerBytes = 256'000'000;  // Gemma's tokenizer.json has 34 MB

// Throws Error naming the file for one that is not JSON, and for deep nesting.
nlohmann::json read_json(const std::filesystem::path& file);

// The member `key` of an object; null if there is none.
const nlohmann::json& member(const nlohmann::json& object, const char* key);

std::string text_or(const nlohmann::json& value, const std::string& by_default);

// The type of the model of a tokenizer.json: "BPE", "Unigram", ….
std::string model_type_of(const nlohmann::json& tokenizer);

// "added_tokens".  Throws Error naming `where` for options that change what is around a token.
std::vector<AddedToken> added_tokens_of(const nlohmann::json& json, const std::string& where);

}  // namespace vitrail::text
