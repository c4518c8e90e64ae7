// SPDX-License-Identifier: Apache-2.0
#pragma once
// --report of `vitrail search`.
#include <string>
#include <vector>

#include "vitrail/analysis/nearest.h"

namespace vitrail::app {

struct SearchResult {
  bool is_text;
  std::string query;  // a text, or the path of an image
  std::vector<analysis::Neighbor> nearest;
  std::vector<std::string> paths;  // one for each neighbour
};

// Writes a page with each query and the images that are most similar to it: those that can be read at their paths.
// Of more than 100 queries, the first ones.  Throws Error naming the file.
void write_search_page(const std::string& file, const std::string& index, const std::vector<SearchResult>& results,
                       const std::string& command_line);

}  // namespace vitrail::app
