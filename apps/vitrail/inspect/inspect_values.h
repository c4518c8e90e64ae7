// SPDX-License-Identifier: Apache-2.0
#pragma once
// inspect --trace, --gradient and --slice: the values of a model's parameters and of its forward pass, or their
// gradients; and the model that inspect shows.
#include <string>
#include <vector>

#include "apps/vitrail/inspect/inspect_table.h"
#include "apps/vitrail/output/value_listing.h"
#include "apps/vitrail/shell/common.h"

namespace vitrail::app {

struct ValueOptions {
  std::string trace;     // an image, "random", or empty: no forward pass
  std::string gradient;  // the name or index of a class whose gradients replace the values, or empty
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
  // The gradients of a class's logit by all values of the forward pass and by the parameters, by their names.  Throws
  // Error for a model that is no classifier, and for the name of no class.
  virtual std::vector<nn::NamedTensor> gradients(const std::string& of_class) const;
  // A row of inspect_tables().  Throws Error for a model that is no Vision Transformer.
  virtual void print_table(const TableOptions& options, bool quiet) const;
};

void print_values(const ValueOptions& options, const InspectedModel& inspected);

}  // namespace vitrail::app
