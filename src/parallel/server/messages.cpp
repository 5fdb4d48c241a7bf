#include "parallel/server/messages.h"

#include "base/error.h"

namespace echelon::exchanges {

void fail_unknown_type(const Message& message, const char* receiver) {
  fail("message {} from rank {} to {} has an unknown type", message.head.kind, message.from, receiver);
}

}  // namespace echelon::exchanges
