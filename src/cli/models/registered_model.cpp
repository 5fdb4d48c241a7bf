#include "cli/models/registered_model.h"

#include <algorithm>

#include "base/error.h"
#include "base/text.h"

namespace echelon::cli {

bool names_version(const std::string& text) {
  const auto at = text.find_last_of('@');
  return at != std::string::npos && at > 0 && at + 1 < text.size() && text.find('/', at) == std::string::npos;
}

RegisteredModel registered_model(OpenRegistry& open, const std::string& text) {
  const auto at = text.find_last_of('@');
  const std::string model = text.substr(0, at), wanted = text.substr(at + 1);
  const std::vector<RegisteredVersion> versions = open.registry->versions(model);
  const RegisteredVersion* found = nullptr;
  for (const RegisteredVersion& v : versions)
    if (std::to_string(v.version.version) == wanted ||
        (v.version.stage == wanted && (!found || v.version.version > found->version.version)))
      found = &v;
  if (found) return {{open.root + "/" + found->run}, found->version};
  const bool stage = std::ranges::find(model_stages, wanted) != std::end(model_stages);
  bad_input("there is no version {} of a model '{}' in {}; `echelon models versions` lists them",
            stage ? "in stage '" + wanted + "'" : wanted, model, open.root);
}

}  // namespace echelon::cli
