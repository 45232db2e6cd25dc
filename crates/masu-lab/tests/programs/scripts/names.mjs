// Reports the names of tests alone: Node's own reporters print how long each took.
export default async function* names(events) {
  for await (const { type, data } of events) {
    if (type === 'test:pass' || type === 'test:fail') yield `${type.slice(5)}: ${data.name}\n`;
  }
}
