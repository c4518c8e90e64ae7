// SPDX-License-Identifier: Apache-2.0
#pragma once
// The values of a forward pass on standard output: a row for each, or the slices that were asked for.
#include <deque>
#include <string>
#include <vector>

#include "apps/vitrail/output/npz_file.h"
#include "apps/vitrail/output/tensor_text.h"
#include "vitrail/models/traced_names.h"

namespace vitrail::app {

class ValueListing {
 public:
  // slices: "NAME[0, :3]".  With slices no rows are printed.  `family` (may be null): names in this family are known
  // too.  `file` (may be null) gets all values of the forward pass.
  explicit ValueListing(const std::vector<std::string>& slices, const weights::KeyMap* family = nullptr,
                        NpzArrays* file = nullptr);

  // A value of the forward pass: a row, or kept for a slice.  A row whose tensor has been reported under another name
  // names that instead of its statistics.
  void add(const std::string& name, const Tensor& tensor);
  // A tensor that has no row but may be sliced: a parameter.
  void offer(const std::string& name, const Tensor& tensor);

  bool prints_rows() const { return requests_.empty(); }
  bool complete() const;  // every slice has its tensor
  // Prints the slices in the order in which they were asked for.  Throws Error that ends in `expected` for a name that
  // did not come.
  void finish(const std::string& expected) const;

 private:
  struct Request {
    std::string text, slice;
    std::vector<models::TracedName> names;  // what the name can mean, the first that came is meant
    size_t rank = SIZE_MAX;                 // index in `names` of the tensor
    Tensor tensor = {};
  };
  struct Row {
    std::string name;
    Tensor tensor;
  };

  NpzArrays* file_;
  std::vector<Request> requests_;
  std::vector<std::string> known_;  // for errors
  std::deque<Row> recent_;          // rows that later ones may repeat
};

}  // namespace vitrail::app
