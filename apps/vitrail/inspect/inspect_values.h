// SPDX-License-Identifier: Apache-2.0
#pragma once
// inspect --trace and --slice: the values of a model's parameters and of its forward pass.
#include <string>
#include <vector>

#include "apps/vitrail/output/value_listing.h"
#include "apps/vitrail/shell/common.h"

namespace vitrail::app {

struct ValueOptions {
  std::string trace;  // an image, "random", or empty: no forward pass
  std::vector<std::string> slices;
  int64_t batch = 1;
  std::string output;  // FILE.npz for the values of the forward pass, or empty
};

// A model as `inspect` shows it.  Without weights, its values are random.
class InspectedModel {
 public:
  virtual ~InspectedModel() = default;
  virtual std::string source() const = 0;                     // its name, for messages
  virtual const weights::Checkpoint* checkpoint() const = 0;  // null: an architecture or a config.json
  virtual const weights::KeyMap* key_map() const = 0;         // likewise
  virtual void print_summary() const = 0;
  virtual std::shared_ptr<const nn::Module> build(Device device) const = 0;
  // One forward pass of the built model.  The listing gets the inputs and outputs; modules report theirs to the trace.
  virtual void trace(const nn::Module& model, ValueListing& listing) const = 0;
};

void print_values(const ValueOptions& options, const InspectedModel& inspected);

}  // namespace vitrail::app
