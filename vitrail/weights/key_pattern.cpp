// SPDX-License-Identifier: Apache-2.0
#include "vitrail/weights/key_pattern_internal.h"

#include <algorithm>
#include <string_view>

#include "vitrail/base/error.h"

namespace vitrail::weights {
namespace {

// Far above what names need.  Together they bound the time and memory of matching, and the recursion depth of the
// expression compiler and matcher.
constexpr size_t kMaxPattern = 512;
constexpr size_t kMaxKey = 512;
constexpr int kMaxCounts = 20;  // counts such as {2,4} repeat their operand, and nested counts multiply
constexpr int kMaxGroups = 16;  // the matcher copies the captures of all groups in each step

// The position at which the character class or group that opens at `at` closes.
size_t skip_brackets(std::string_view pattern, size_t at) {
  int depth = 0;
  bool in_class = false;
  for (; at < pattern.size(); ++at) {
    const char c = pattern[at];
    const char next = at + 1 < pattern.size() ? pattern[at + 1] : '\0';
    if (c == '\\') {
      ++at;
    } else if (in_class && c == '[' && (next == ':' || next == '.' || next == '=')) {  // as in [[:alpha:]_]
      const char end[] = {next, ']'};
      at = std::min(pattern.find(std::string_view(end, 2), at + 2), pattern.size() - 1) + 1;
    } else if (in_class) {
      in_class = c != ']';
    } else if (c == '[') {
      in_class = true;
    } else if (c == '(') {
      ++depth;
    } else if (c == ')') {
      --depth;
    }
    if (depth == 0 && !in_class) return at;
  }
  return at;
}

// The largest number between the braces that open at `at`, clamped to kMaxCounts + 1.
int largest_count(std::string_view pattern, size_t at) {
  int largest = 1, number = 0;
  for (++at; at < pattern.size() && pattern[at] != '}'; ++at) {
    const bool digit = pattern[at] >= '0' && pattern[at] <= '9';
    number = digit ? std::min(number * 10 + (pattern[at] - '0'), kMaxCounts + 1) : 0;
    largest = std::max(largest, number);
  }
  return largest;
}

// Returns the product of all counts.  Refuses back-references, which cannot be matched in linear time; look-ahead,
// which starts another match at each position of the key, and nested ones another at each position of that; and large
// counts, which the expression compiler does not check for overflow.
int check_pattern(const std::string& pattern, const std::string& where) {
  int counts = 1, groups = 0;
  const auto refuse = [&](const std::string& expected) { throw Error(where, expected, "\"" + pattern + "\""); };
  for (size_t i = 0; i < pattern.size(); ++i) {
    if (pattern[i] == '\\') {
      ++i;
      if (i < pattern.size() && pattern[i] >= '0' && pattern[i] <= '9')
        refuse("a regular expression without back-references");
    } else if (pattern[i] == '[') {
      i = skip_brackets(pattern, i);
    } else if (pattern[i] == '{') {
      counts *= largest_count(pattern, i);
      if (counts > kMaxCounts) refuse(str("counts in braces that multiply to at most ", kMaxCounts));
    } else if (pattern.compare(i, 3, "(?=") == 0 || pattern.compare(i, 3, "(?!") == 0) {
      refuse("a regular expression without look-ahead");
    } else if (pattern[i] == '(' && pattern.compare(i, 2, "(?") != 0) {
      if (++groups > kMaxGroups) refuse(str("at most ", kMaxGroups, " groups; (?:…) is not counted"));
    }
  }
  return counts;
}

std::regex compile(const std::string& pattern, const std::string& where) {
  try {
#ifdef __GLIBCXX__
    // The breadth-first matcher takes linear time; the default one backtracks recursively.
    return std::regex(pattern, std::regex::ECMAScript | std::regex_constants::__polynomial);
#else
    return std::regex(pattern, std::regex::ECMAScript);
#endif
  } catch (const std::regex_error& error) {
    throw Error(where, "a regular expression", str("\"", pattern, "\" (", error.what(), ")"));
  }
}

}  // namespace

// Considers only characters outside of groups and classes, so optional parts inside them do not matter.
std::string required_literal(const std::string& pattern) {
  std::string longest, run;
  const auto end_run = [&] {
    if (run.size() > longest.size()) longest = run;
    run.clear();
  };
  for (size_t i = 0; i < pattern.size(); ++i) {
    const char c = pattern[i];
    if (c == '|') return "";
    if (c == '(' || c == '[') {
      end_run();
      i = skip_brackets(pattern, i);
    } else if (c == '*' || c == '?' || c == '{' || c == '+') {  // the preceding character may be optional, as in a+?*
      if (!run.empty()) run.pop_back();
      end_run();
      if (c == '{') i = pattern.find('}', i);
      if (i == std::string::npos) return "";
    } else if (c == '\\' && i + 1 < pattern.size() && (pattern[i + 1] == '.' || pattern[i + 1] == '/')) {
      run += pattern[++i];
    } else if (c == '\\') {
      end_run();
      const char kind = i + 1 < pattern.size() ? pattern[i + 1] : '\0';
      i += kind == 'x' ? 3 : kind == 'u' ? 5 : kind == 'c' ? 2 : 1;  // \x41, \u0041, \cA
    } else if (c == '.' || c == '^' || c == '$') {
      end_run();
    } else {
      run += c;
    }
  }
  end_run();
  return longest;
}

KeyPattern::KeyPattern(const std::string& pattern, const std::string& where) : literal_(required_literal(pattern)) {
  if (pattern.size() > kMaxPattern)
    throw Error(where, str("at most ", kMaxPattern, " characters"), str(pattern.size()));
  size_ = pattern.size() * static_cast<size_t>(check_pattern(pattern, where));
  expression_ = compile(pattern, where);
}

std::optional<std::string> KeyPattern::replace(const std::string& key, const std::string& replacement) const {
  if (key.size() > kMaxKey || key.find(literal_) == std::string::npos) return std::nullopt;
  std::smatch groups;
  if (!std::regex_match(key, groups, expression_)) return std::nullopt;
  return groups.format(replacement);
}

}  // namespace vitrail::weights
