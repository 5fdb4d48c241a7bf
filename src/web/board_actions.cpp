#include "web/board_actions.h"

#include "base/error.h"
#include "track/control.h"
#include "world/os/folder_lock.h"

namespace echelon::web {

namespace {

// What the request has under `key`; BadInput if it is nothing, or something else.
template <typename T>
T value_of(const Json& body, const char* key, const char* what) {
  if (!body.contains(key)) bad_input("the request has no '{}', which is {}", key, what);
  try {
    return body.at(key).get<T>();
  } catch (const Json::exception&) {
    bad_input("'{}' of the request is not {}", key, what);
  }
}

std::vector<std::string> list_of(const Json& body, const char* key) {
  return body.contains(key) ? value_of<std::vector<std::string>>(body, key, "a list of texts")
                            : std::vector<std::string>{};
}

Json label(Registry& registry, Disk& disk, const RunFolder& folder, const Json& body) {
  Labels labels;
  registry.in_transaction([&] {
    labels = read_labels(disk, folder);
    change_tags(labels, list_of(body, "add"), list_of(body, "remove"));
    if (body.contains("note")) {
      labels.note = value_of<std::string>(body, "note", "a text");
      check_note(labels.note);
    }
    if (body.contains("star")) labels.star = value_of<bool>(body, "star", "true or false");
    write_labels(disk, folder, labels);
  });
  return to_json(labels);
}

Json control(Disk& disk, const RunFolder& folder, const Json& body) {
  if (!is_folder_locked(folder.path)) bad_input("{}: no process trains in it", folder.path);
  ControlRequest request{.action = value_of<std::string>(body, "action", "a text")};
  if (request.action == "rate") request.value = value_of<double>(body, "value", "a number");
  send_control(disk, folder, request);
  return {{"sent", request.action}};
}

}  // namespace

Reply act(BoardApi& api, const std::string& path, const std::string& body) {
  Json answer;
  Reply failed;
  failed.status = 0;
  try {
    const Json json = parse_json(body, "the request", {.depth = 4, .values = 1000});
    if (!json.is_object()) bad_input("the request is no JSON object");
    const auto name = value_of<std::string>(json, "run", "the name of a run");
    api.with_registry([&](Registry& registry, Disk& disk, const std::string& root) {
      try {
        registry.get(name);
        const RunFolder folder{root + "/" + name};
        if (path == "/api/label") {
          answer = label(registry, disk, folder, json);
          refresh_run(disk, root, registry, api.hooks().read, name);
        } else if (path == "/api/trash") {
          answer = {{"path", throw_away(disk, root, name)}};
          registry.remove(name);
        } else if (path == "/api/control") {
          answer = control(disk, folder, json);
        } else {
          failed = error_reply(404, "there is nothing to do here");
        }
      } catch (const BadInput& problem) {
        failed = error_reply(400, problem.what());
      } catch (const std::exception& problem) {
        failed = error_reply(500, problem.what());
      }
    });
  } catch (const BadInput& problem) {
    return error_reply(400, problem.what());
  } catch (const std::exception& problem) {
    return error_reply(500, problem.what());
  }
  return failed.status != 0 ? failed : json_reply(answer);
}

}  // namespace echelon::web
