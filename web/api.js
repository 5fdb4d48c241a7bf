// The server's questions and answers. The token for actions comes in the address behind #token= and stays in this tab.

const inAddress = /[#&]token=([0-9a-f]{64})/.exec(location.hash);
if (inAddress) {
  sessionStorage.setItem("token", inAddress[1]);
  history.replaceState(null, "", location.pathname + "#/runs");
}
const token = () => sessionStorage.getItem("token") ?? "";
export const mayAct = () => token() !== "";

const headers = () => token() ? { Authorization: "Bearer " + token() } : {};

async function answer(response) {
  const body = await response.json();
  if (!response.ok) throw new Error(body.error ?? `error ${response.status}`);
  return body;
}

// values: {key: text, number or list of them}
export async function get(path, values = {}, signal = undefined) {
  const query = new URLSearchParams();
  for (const [key, value] of Object.entries(values))
    for (const one of Array.isArray(value) ? value : [value])
      if (one !== undefined && one !== null && one !== "") query.append(key, one);
  const text = query.toString();
  return answer(await fetch(path + (text ? "?" + text : ""), { headers: headers(), signal }));
}

// A picture that the server has, ready to be drawn. Fetched, because only so the token goes with the question.
export async function picture(path, values) {
  const response = await fetch(path + "?" + new URLSearchParams(values), { headers: headers() });
  if (!response.ok) throw new Error((await response.json()).error);
  return createImageBitmap(await response.blob());
}

export async function post(path, body) {
  return answer(await fetch(path, { method: "POST", headers: { ...headers(), "Content-Type": "application/json" }, body: JSON.stringify(body) }));
}

// Calls changed(names of runs) as the server tells of changes, and state("live" | "gone"), for as long as the page is open.
export async function watch(changed, state) {
  for (;;) {
    try {
      const response = await fetch("/api/events", { headers: headers() });
      if (!response.ok) throw new Error("no stream");
      state("live");
      const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
      let text = "";
      for (;;) {
        const { value, done } = await reader.read();
        if (done) break;
        text += value;
        for (let end; (end = text.indexOf("\n\n")) >= 0; text = text.slice(end + 2)) {
          const line = text.slice(0, end);
          if (line.startsWith("data: ")) changed(JSON.parse(line.slice(6)).runs);
        }
      }
    } catch { /* asked again below */ }
    state("gone");
    await new Promise(resolve => setTimeout(resolve, 2000));
  }
}
