// Tokens of the session for a telephone in a page.

/** A function that returns the token for `fields()`; a new one shortly before its end, or after `forget()`. */
export function grants(fields, over) {
  let token = null;
  const granted = async () => {
    if (token && Date.parse(token.expires_at) - Date.now() > 60_000) return token;
    const response = await fetch("/console/phone/token", { method: "POST", body: new URLSearchParams(fields()) });
    const answer = await response.json().catch(() => ({ problem: over }));
    if (!response.ok) throw new Error([answer.problem, ...Object.values(answer.errors ?? {})].join(" "));
    token = answer;
    return token;
  };
  granted.forget = () => { token = null; };
  return granted;
}
