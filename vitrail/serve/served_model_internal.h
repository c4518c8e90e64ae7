// SPDX-License-Identifier: Apache-2.0
#pragma once
// A model under its name.
#include <memory>
#include <string>

#include "vitrail/base/mapped_file_internal.h"
#include "vitrail/serve/options.h"
#include "vitrail/tasks/loaded_model.h"

namespace vitrail::serve {

class ServedModel {
 public:
  // Opens a model and runs a forward pass.  A dual model without a tokenizer serves images only, with a warning.
  // Throws Error as tasks::open_model().
  ServedModel(const ModelSource& source, const ModelOptions& options);

  const std::string& name() const { return name_; }
  const std::string& note() const { return note_; }  // what its config.json tells users of it; empty: nothing
  uint64_t number() const { return number_; }        // no other model of this process has it
  // Throws Error naming a file of the model whose content has changed since it was opened: results may be wrong.
  void check_files() const { files_.check(); }
  bool has_changed_files() const;
  const tasks::LoadedModel& loaded() const { return *loaded_; }

 private:
  std::string name_, note_;
  uint64_t number_;
  MappedFileGroup files_;
  std::unique_ptr<tasks::LoadedModel> loaded_;
};

using ModelPointer = std::shared_ptr<const ServedModel>;

}  // namespace vitrail::serve
