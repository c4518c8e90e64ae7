// SPDX-License-Identifier: Apache-2.0
#pragma once
// The functions of the rows of inspect_tables().
#include "apps/vitrail/inspect/inspect_table.h"

namespace vitrail::app {

// Tables of one image: head_tables.cpp, token_tables.cpp.
void print_heads(const TableInput& input);
void print_ablation(const TableInput& input);
void print_norms(const TableInput& input);
void print_lens(const TableInput& input);

// Tables of many images: image_set_tables.cpp.
void print_cka(const TableInput& input);
void print_neurons(const TableInput& input);

// The class of a table, "class 281 tabby" as its first line, and the probabilities of logits.
struct TableClass {
  TableClass(const TableInput& input, const Tensor& logits);  // [1, classes] of the model
  std::string name_of(int64_t index) const;                   // for people: escaped, or the index without names
  void print(const Tensor& logits) const;

  std::vector<std::string> names;
  int64_t index = 0;
};

}  // namespace vitrail::app
