// SPDX-License-Identifier: Apache-2.0
#pragma once
// Matches the names of class folders with the classes of a model.
#include <cstdint>
#include <string>
#include <vector>

namespace vitrail::data {

struct ClassMatch {
  enum class Rule { labels, indices, none };
  Rule rule = Rule::none;
  std::vector<int64_t> indices;  // class index per name; empty with Rule::none
};

// A name matches, in this order of precedence: exactly a label; a WordNet id; a complete label ("tabby, tabby cat");
// one of a label's comma-separated synonyms ("tabby"); a label's number ("01" for "1"), if all labels are
// integers.  All but the first ignore case and take '_' as a space, and all compare names after Unicode normalisation.
// `labels` and `wordnet_ids` are in index order; either may be empty.
//
// Either all names match or none.  If none does, and each is an integer from 0 to num_classes − 1 (leading zeros are
// allowed), it is the index of its class, unless labels are numbers.  Throws Error if only some match, if names and
// labels are numbers and none matches, if a name fits several classes equally well ("crane" is a bird and a machine),
// and if two names are the same number; the message lists them.
ClassMatch match_classes(const std::string& where, const std::vector<std::string>& names,
                         const std::vector<std::string>& labels, const std::vector<std::string>& wordnet_ids,
                         int64_t num_classes = INT64_MAX);

// Whether the name, taken alone, is that of a class, or the index of one.
bool names_a_class(const std::string& name, const std::vector<std::string>& labels,
                   const std::vector<std::string>& wordnet_ids, int64_t num_classes);

// The first 20 names in quotes, separated by commas, and the number of the others.
std::string quoted_list(const std::vector<std::string>& names);

}  // namespace vitrail::data
