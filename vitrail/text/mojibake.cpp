// SPDX-License-Identifier: Apache-2.0
#include "vitrail/text/mojibake_internal.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <optional>
#include <unordered_map>
#include <vector>

#include "vitrail/base/utf8_internal.h"
#include "vitrail/text/html_entities_internal.h"
#include "vitrail/text/text_tables_internal.h"
#include "vitrail/text/unicode_internal.h"

namespace vitrail::text {
namespace {

using Json = nlohmann::json;
using Bytes = std::u32string;  // a byte is a character up to 0xff, so that expressions serve bytes too

constexpr char32_t kSubstitute = 0x1a, kReplacementCharacter = 0xfffd, kNoBreakSpace = 0xa0;

// A set of characters: the first and last one of each of its ranges.
class CharacterSet {
 public:
  explicit CharacterSet(const std::string& ranges) : ranges_(code_points(ranges)), is_word_(ranges_ == U"\\w") {}

  bool contains(char32_t c) const {
    if (is_word_) return is_letter(c) || is_number(c) || c == U'_';
    const auto above = static_cast<size_t>(std::ranges::upper_bound(ranges_, c) - ranges_.begin());
    return above % 2 == 1 || (above > 0 && ranges_[above - 1] == c);
  }
  bool is_start() const { return ranges_ == U"^"; }  // the beginning of the text

 private:
  std::u32string ranges_;
  bool is_word_;
};

using Sequence = std::vector<const CharacterSet*>;
using Alternatives = std::vector<Sequence>;  // a regular expression

// The length of what a sequence matches at a place, which is not 0; 0 if it does not.
size_t match_length(const Sequence& sequence, std::u32string_view text, size_t at) {
  size_t length = 0;
  for (const CharacterSet* set : sequence) {
    const bool matches = set->is_start() ? at == 0 : at + length < text.size() && set->contains(text[at + length]);
    if (!matches) return 0;
    length += set->is_start() ? 0 : 1;
  }
  return length;
}

size_t match_length(const Alternatives& expression, std::u32string_view text, size_t at) {
  for (const Sequence& sequence : expression) {
    if (const size_t length = match_length(sequence, text, at)) return length;
  }
  return 0;
}

bool is_found(const Alternatives& expression, std::u32string_view text) {
  for (size_t at = 0; at < text.size(); ++at) {
    if (match_length(expression, text, at) > 0) return true;
  }
  return false;
}

template <typename Replacement>
std::u32string replaced(const Alternatives& expression, std::u32string_view text, Replacement replacement) {
  std::u32string result;
  for (size_t at = 0; at < text.size();) {
    const size_t length = match_length(expression, text, at);
    result += length > 0 ? replacement(text.substr(at, length)) : std::u32string{text[at]};
    at += std::max<size_t>(length, 1);
  }
  return result;
}

// An encoding of a byte per character.
struct Encoding {
  std::string name;
  std::unordered_map<char32_t, char32_t> upper;  // the characters of the bytes 0x80 to 0xff
  // The byte 0x1a stands for a replacement character, which has lost its byte.
  bool sloppy() const { return name.starts_with("sloppy"); }
};

struct Tables {
  std::vector<CharacterSet> sets;
  std::vector<Encoding> encodings;
  Alternatives bad;           // looks like mojibake
  Alternatives altered;       // bytes that are UTF-8 if a space is 0xa0
  Alternatives lossy;         // bytes that are UTF-8 if 0x1a is the lost byte
  Alternatives utf8;          // characters that bytes of UTF-8 become in some encoding
  Alternatives continuation;  // those of bytes that no character begins with
};

const Tables& tables() {
  static const Tables result = [] {
    const Json json = text_table("mojibake");
    Tables table;
    for (const Json& ranges : json["sets"]) table.sets.emplace_back(ranges.get<std::string>());
    for (const Json& encoding : json["encodings"]) {
      Encoding& added = table.encodings.emplace_back();
      added.name = encoding[0].get<std::string>();
      char32_t byte = 0x80;
      for (const char32_t c : code_points(encoding[1].get<std::string>())) added.upper[c] = byte++;
    }
    const auto expression = [&](const char* name) {
      Alternatives alternatives;
      for (const Json& sequence : json["patterns"][name]) {
        Sequence& added = alternatives.emplace_back();
        for (const Json& set : sequence) added.push_back(&table.sets.at(set.get<size_t>()));
      }
      return alternatives;
    };
    table.bad = expression("bad");
    table.altered = expression("altered");
    table.lossy = expression("lossy");
    table.utf8 = expression("utf8");
    table.continuation = expression("continuation");
    return table;
  }();
  return result;
}

std::optional<Bytes> encoded(std::u32string_view text, const Encoding& encoding) {
  Bytes bytes;
  for (const char32_t c : text) {
    const auto upper = encoding.upper.find(c);
    if (upper != encoding.upper.end()) {
      bytes += upper->second;
    } else if (encoding.sloppy() && c == kReplacementCharacter) {
      bytes += kSubstitute;
    } else if (c < 0x80 && !(encoding.sloppy() && c == kSubstitute)) {
      bytes += c;
    } else {
      return {};
    }
  }
  return bytes;
}

// "Ã la" is "à la", but in Portuguese "Ã s " is "às ".
Bytes restore_a_grave(const Bytes& bytes) {
  Bytes result;
  for (size_t at = 0; at < bytes.size(); ++at) {
    result += bytes[at];
    const std::u32string_view remaining = std::u32string_view(bytes).substr(at);
    if (!remaining.starts_with(U"\u00c3 ")) continue;
    const auto continues = [&](std::u32string_view word) { return remaining.substr(2).starts_with(word); };
    if (!continues(U" ") && !continues(U"quele") && !continues(U"quela") && !continues(U"quilo") && !continues(U"s "))
      result += kNoBreakSpace;
  }
  return result;
}

// Spaces that were the byte 0xa0 of a character.
Bytes restore_no_break_spaces(const Bytes& bytes) {
  return replaced(tables().altered, restore_a_grave(bytes), [](std::u32string_view found) {
    Bytes with_space(found);
    std::ranges::replace(with_space, U' ', kNoBreakSpace);
    return with_space;
  });
}

// UTF-8, in which U+0000 may have two bytes (Java), and a character above U+FFFF three for each of its surrogates
// (CESU-8).
std::optional<std::u32string> decoded(const Bytes& bytes) {
  const auto in = [](char32_t byte, char32_t first, char32_t last) { return byte >= first && byte <= last; };
  std::string utf8;
  for (size_t at = 0; at < bytes.size();) {
    const std::u32string_view remaining = std::u32string_view(bytes).substr(at);
    if (remaining.starts_with(U"\u00c0\u0080")) {
      utf8 += '\0';
      at += 2;
    } else if (remaining.size() >= 6 && remaining[0] == 0xed && in(remaining[1], 0xa0, 0xaf) &&
               in(remaining[2], 0x80, 0xbf) && remaining[3] == 0xed && in(remaining[4], 0xb0, 0xbf) &&
               in(remaining[5], 0x80, 0xbf)) {
      append_utf8(0x10000 + ((remaining[1] & 0xf) << 16) + ((remaining[2] & 0x3f) << 10) + ((remaining[4] & 0xf) << 6) +
                      (remaining[5] & 0x3f),
                  utf8);
      at += 6;
    } else {
      utf8 += static_cast<char>(bytes[at++]);
    }
  }
  if (!is_utf8(utf8)) return {};
  return code_points(utf8);
}

std::optional<std::u32string> decoded_as_utf8(std::u32string_view text, const Encoding& encoding) {
  std::optional<Bytes> bytes = encoded(text, encoding);
  if (!bytes) return {};
  // In Mac OS Roman, an en dash before a space would be found.
  if (encoding.name != "macroman" && is_found(tables().altered, *bytes)) bytes = restore_no_break_spaces(*bytes);
  if (encoding.sloppy()) {
    bytes = replaced(tables().lossy, *bytes, [](auto) { return U"\u00ef\u00bf\u00bd"; });  // U+FFFD in UTF-8
  }
  return decoded(*bytes);
}

// Repairs the parts that look like UTF-8 in another encoding, for text of several encodings.
std::u32string repair_parts(std::u32string_view text) {
  std::u32string result;
  for (size_t at = 0; at < text.size();) {
    size_t end = at;
    if (at == 0 || match_length(tables().continuation, text, at - 1) == 0) {
      while (const size_t length = match_length(tables().utf8, text, end)) end += length;
    }
    const std::u32string part(text.substr(at, std::max<size_t>(end - at, 1)));
    const bool shorter = part.size() < text.size();  // so that the recursion ends
    result += end > at && shorter && is_found(tables().bad, part) ? repair_mojibake(part) : part;
    at += part.size();
  }
  return result;
}

std::u32string repair_once(const std::u32string& text) {
  const bool ascii = std::ranges::all_of(text, [](char32_t c) { return c < 0x80; });
  if (ascii || !is_found(tables().bad, text)) return text;
  for (const Encoding& encoding : tables().encodings) {
    if (auto repaired = decoded_as_utf8(text, encoding)) return *repaired;
  }
  std::u32string repaired = repair_parts(text);
  if (repaired == text) std::ranges::transform(text, repaired.begin(), without_c1);
  return repaired;
}

}  // namespace

std::u32string repair_mojibake(std::u32string text) {
  constexpr int kMaxRounds = 16;  // a text that was damaged n times has n rounds: bounds the time for a hostile one
  for (int round = 0; round < kMaxRounds; ++round) {
    std::u32string repaired = repair_once(text);
    if (repaired == text) break;
    text = std::move(repaired);
  }
  return text;
}

}  // namespace vitrail::text
