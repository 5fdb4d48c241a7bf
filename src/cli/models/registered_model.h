#pragma once
// A trained network by the name that it was registered with (`echelon models register`): "digits@2", or
// "digits@production", the newest version of that stage.

#include <string>

#include "cli/training/run_record.h"

namespace echelon::cli {

struct RegisteredModel {
  RunFolder folder;
  ModelVersion version;
};

bool names_version(const std::string& text);  // whether it has the form MODEL@VERSION
// BadInput if there is none.
RegisteredModel registered_model(OpenRegistry& open, const std::string& text);

}  // namespace echelon::cli
