// SPDX-License-Identifier: Apache-2.0
#pragma once
// Tokens that a text contains literally, such as "<|endoftext|>": they are found before the text is split into words.
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace vitrail::text {

struct AddedToken {
  std::string content;
  int64_t id = 0;
  bool normalized = false;  // found in the normalised text instead of the given one
  bool lstrip = false;      // takes the white space in front of it
};

// A part of a text: an added token, or text between two of them.
struct TextPart {
  std::string_view text;
  std::optional<int64_t> id{};
};

// Immutable.
class AddedTokens {
 public:
  // Those that have the flag; normalize: what the text in which they are found has undergone, if any.
  AddedTokens(const std::vector<AddedToken>& tokens, bool normalized,
              const std::function<std::string(std::string_view)>& normalize = {});
  // The parts of `text` in order.  None is empty.  Of several tokens at a place, the longest is taken.
  std::vector<TextPart> split(std::string_view text) const;

 private:
  std::map<char, std::vector<AddedToken>> by_first_byte_;  // the longest first
};

}  // namespace vitrail::text
