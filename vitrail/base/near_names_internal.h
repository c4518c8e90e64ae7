// SPDX-License-Identifier: Apache-2.0
#pragma once
// Names that a misspelled name may have meant.
#include <string>
#include <vector>

namespace vitrail {

// The number of inserted, removed and replaced characters between two names.
size_t edit_distance(const std::string& a, const std::string& b);

// Without upper-case letters of ASCII.
std::string lower_case(std::string text);

// The number of words, separated by "_", of b that a has too.
size_t shared_words(const std::string& a, const std::string& b);

// At most three candidates that differ from `name` in few characters, the nearest first.  Case does not count.
std::vector<std::string> near_names(const std::string& name, const std::vector<std::string>& candidates);

// The end of a message about an unknown name: "; did you mean NAME?", empty if no candidate is near.
std::string did_you_mean(const std::string& name, const std::vector<std::string>& candidates);

}  // namespace vitrail
